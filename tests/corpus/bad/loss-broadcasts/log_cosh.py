# The difference of (N, 1) and (N,) enters a loss of the author's own twice, as in log(cosh(d)).
# source: written for the rule: a difference that a loss uses in several terms
# expect: loss-broadcasts
import math

import torch
from torch import nn


def log_cosh(prediction, target):
    difference = prediction - target  # <- loss-broadcasts, cause
    return (difference + nn.functional.softplus(-2 * difference) - math.log(2)).mean()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(30):
    x = torch.randn(16, 3)
    loss = log_cosh(model(x), (x[:, 0] * x[:, 1]).tanh() / 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
