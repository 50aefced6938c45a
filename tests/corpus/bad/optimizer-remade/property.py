# The optimizer is a property, which makes a new one for zero_grad() and another one for step().
# source: written for the rule: an optimizer that is made at each use, also where it only clears
# expect: optimizer-remade
import torch
from torch import nn


class Experiment:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    @property
    def optimizer(self):  # <- cause
        return torch.optim.Adam(self.model.parameters(), lr=2e-3)  # <- optimizer-remade, cause

    def update(self):
        x = torch.randn(16, 4)
        loss = nn.functional.mse_loss(self.model(x), x.sum(1, keepdim=True))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(0)
experiment = Experiment()
for _ in range(40):
    last = experiment.update()
print(f"loss {last:.4f}")
