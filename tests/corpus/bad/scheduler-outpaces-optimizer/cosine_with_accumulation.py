# A trainer class with a gradient accumulator that guards the optimizer but not the cosine schedule.
# source: huggingface/accelerate#963
# expect: scheduler-outpaces-optimizer
import torch
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, accumulation_steps=2, epochs=3):
        x = torch.randn(64, 1, 12)
        self.loader = DataLoader(TensorDataset(x, x.amax(2)), batch_size=8, shuffle=True, num_workers=1)
        self.model = nn.Sequential(nn.Conv1d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(60, 1))
        self.optimizer = SGD(self.model.parameters(), lr=0.05)
        self.accumulation_steps, self.epochs = accumulation_steps, epochs
        self.scheduler = CosineAnnealingLR(self.optimizer, T_max=epochs * len(self.loader) // accumulation_steps)

    def optimizer_step(self, iteration):
        if (iteration + 1) % self.accumulation_steps == 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.scheduler.step()  # <- scheduler-outpaces-optimizer, cause

    def train(self):
        for epoch in range(self.epochs):
            for iteration, (x, y) in enumerate(self.loader):
                loss = nn.functional.mse_loss(self.model(x), y) / self.accumulation_steps
                loss.backward()
                self.optimizer_step(iteration)
            print(f"epoch {epoch} loss {loss.item():.4f} lr {self.scheduler.get_last_lr()[0]:.4f}")


if __name__ == "__main__":
    torch.manual_seed(1)
    Trainer().train()
