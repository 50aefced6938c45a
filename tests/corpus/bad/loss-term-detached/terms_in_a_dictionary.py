# The terms stand in a dictionary that sum() adds up, and one comes from a prediction without gradients.
# source: written for the rule: a sum of terms in a dictionary
# expect: loss-term-detached
import torch
from torch import nn


class Solver:
    def __init__(self):
        self.field = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.field.parameters(), lr=3e-3)

    @torch.no_grad()  # <- cause
    def predict(self, points):
        return self.field(points)

    def inner_loss(self):
        points = torch.rand(32, 2)
        return (self.field(points) - torch.sin(3 * points[:, :1])).pow(2).mean()

    def boundary_loss(self):
        points = torch.rand(16, 2)
        points[:, 0] = 0
        return self.predict(points).pow(2).mean()  # <- cause

    def step(self):
        terms = {"inner": self.inner_loss(), "boundary": 10 * self.boundary_loss()}
        self.optimizer.zero_grad()
        sum(terms.values()).backward()  # <- loss-term-detached
        self.optimizer.step()
        return {name: round(value.item(), 4) for name, value in terms.items()}


torch.manual_seed(0)
solver = Solver()
for _ in range(30):
    last = solver.step()
print(last)
