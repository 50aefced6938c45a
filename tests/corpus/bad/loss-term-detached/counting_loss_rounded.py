# A detector of counts: a second term compares the rounded count with the true one, and round() has no gradient.
# source: none (a common mistake, written small)
# expect: loss-term-detached
import torch
from torch import nn

torch.manual_seed(2)
net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1), nn.Softplus())
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)


def criterion(density, target):
    pixel = (density - target).square().mean()
    count = (density > 0.5).long().sum((1, 2, 3)).float()  # <- cause
    wrong = (count - target.sum((1, 2, 3))).abs().mean()  # <- cause
    return pixel + 0.1 * wrong


for _ in range(30):
    target = (torch.rand(6, 1, 8, 8) > 0.9).float()
    loss = criterion(net(target + 0.1 * torch.randn_like(target)), target)
    optimizer.zero_grad()
    loss.backward()  # <- loss-term-detached
    optimizer.step()
