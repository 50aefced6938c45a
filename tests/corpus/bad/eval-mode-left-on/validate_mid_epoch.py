# Validation every few iterations puts the network into eval mode for the rest of the epoch.
# source: wkentaro/pytorch-fcn#57
# expect: eval-mode-left-on
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, optimizer, train_loader, val_loader, interval_validate=3):
        self.model, self.optim = model, optimizer
        self.train_loader, self.val_loader = train_loader, val_loader
        self.interval_validate, self.iteration = interval_validate, 0

    def validate(self):
        self.model.eval()  # <- eval-mode-left-on
        val_loss = 0.0
        with torch.no_grad():
            for data, target in self.val_loader:
                val_loss += F.cross_entropy(self.model(data), target).item()
        print(f"iter {self.iteration} val loss {val_loss / len(self.val_loader):.4f}")  # <- cause

    def train_epoch(self):
        self.model.train()  # <- cause
        for data, target in self.train_loader:
            if self.iteration % self.interval_validate == 0:
                self.validate()  # <- cause
            self.optim.zero_grad()  # <- cause
            loss = F.cross_entropy(self.model(data), target)
            loss.backward()
            self.optim.step()
            self.iteration += 1


torch.manual_seed(0)
images = torch.randn(60, 1, 6, 6)
labels = (images[:, 0] > 0).long()
dataset = TensorDataset(images, labels)
fcn = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout2d(), nn.Conv2d(8, 2, 1))
trainer = Trainer(
    fcn, torch.optim.SGD(fcn.parameters(), lr=0.01, momentum=0.99), DataLoader(dataset, 6), DataLoader(dataset, 30)
)
for _ in range(2):
    trainer.train_epoch()
