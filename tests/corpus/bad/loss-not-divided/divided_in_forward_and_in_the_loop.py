# A model that returns its own loss already divides it by the window, and so does the script's loop.
# source: none (a common mistake, written small)
# expect: loss-not-divided
# severity: hint (a larger learning rate makes up for it)
import torch
from torch import nn


class Regressor(nn.Module):
    def __init__(self, accumulation):
        super().__init__()
        self.accumulation = accumulation
        self.layers = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 1))

    def forward(self, x, y):
        prediction = self.layers(x).squeeze(1)
        return (prediction - y).square().mean() / self.accumulation, prediction  # <- cause


torch.manual_seed(4)
accumulation = 5
model = Regressor(accumulation)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for i, x in enumerate(torch.randn(50, 8, 4)):
    loss, _ = model(x, x.norm(dim=1))
    loss = loss / accumulation  # <- cause
    loss.backward()  # <- loss-not-divided, cause
    if (i + 1) % accumulation == 0:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
