# Ten batches an epoch and windows of four: the last two are wiped by the zero_grad at the start of the next epoch.
# source: ultralytics/ultralytics#11217
# expect: last-accumulation-window-dropped
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, epochs=4, accumulate=4):
        self.epochs, self.accumulate = epochs, accumulate
        x = torch.randn(80, 1, 10, 10)
        y = torch.stack([x.mean((1, 2, 3)), x.amax((1, 2, 3))], 1)
        self.train_loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        self.model = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.SiLU(), nn.Flatten(), nn.Linear(128, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, nesterov=True)

    def optimizer_step(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=10.0)
        self.optimizer.step()  # <- last-accumulation-window-dropped
        self.optimizer.zero_grad()

    def train(self):
        for epoch in range(self.epochs):
            self.model.train()
            self.optimizer.zero_grad()
            for i, (img, box) in enumerate(self.train_loader):
                loss = nn.functional.smooth_l1_loss(self.model(img), box)
                (loss / self.accumulate).backward()
                if (i + 1) % self.accumulate == 0:  # <- cause
                    self.optimizer_step()
            print(f"epoch {epoch + 1}/{self.epochs} loss {loss.item():.4f}")  # <- cause


torch.manual_seed(0)
Trainer().train()
