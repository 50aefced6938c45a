# A detector's encoder is frozen and set to eval() in the constructor; its trainer calls train() at each epoch's start.
# source: none (a common mistake, written small)
# expect: optimizer-params-frozen
# severity: hint (statistics may be adapted to new data on purpose)
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU())
        self.head = nn.Linear(4, 1)
        self.encoder.requires_grad_(False)
        self.encoder.eval()

    def forward(self, x):
        return self.head(self.encoder(x).mean(2))


def train_epoch(detector, optimizer, signals):
    detector.train()  # <- cause
    for x in signals:
        score = detector(x).squeeze(1)  # <- optimizer-params-frozen
        loss = nn.functional.binary_cross_entropy_with_logits(score, (x.amax((1, 2)) > 2).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(5)
detector = Detector()
optimizer = torch.optim.Adam(detector.head.parameters(), lr=1e-2)
for _ in range(3):
    train_epoch(detector, optimizer, torch.randn(8, 12, 1, 10))
