# A trainer feeds the accuracy on held-out data to ReduceLROnPlateau, whose mode is left at "min".
# source: none (a common mistake, written small)
# expect: scheduler-cadence
# severity: hint (what the metric means is told by its name only)
import torch
from torch import nn
from torch.optim import lr_scheduler


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        self.scheduler = lr_scheduler.ReduceLROnPlateau(self.optimizer, factor=0.5, patience=0)  # <- cause

    def train_epoch(self, batches):
        for x in batches:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), x[:, :1] - x[:, 1:2]).backward()
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self, x):
        accuracy = ((self.model(x) > 0) == (x[:, :1] > x[:, 1:2])).float().mean()
        return {"val_acc": accuracy.item()}

    def fit(self, batches, held_out, epochs=8):
        for _ in range(epochs):
            self.train_epoch(batches)
            metrics = self.evaluate(held_out)
            self.scheduler.step(metrics["val_acc"])  # <- scheduler-cadence


torch.manual_seed(3)
Trainer(nn.Linear(5, 1)).fit(torch.randn(6, 16, 5), torch.randn(200, 5))
