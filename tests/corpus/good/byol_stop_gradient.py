# BYOL: an online net with a predictor, a slow target under no_grad, and a symmetric loss; no negative pairs.
# source: none (a common pattern, written small)
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(12)
online = nn.Sequential(nn.Linear(8, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 8))
predictor = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.05, momentum=0.9)


def distance(view, other):
    with torch.no_grad():
        wanted = F.normalize(target(other), dim=1)
    return 2 - 2 * (F.normalize(predictor(online(view)), dim=1) * wanted).sum(1).mean()


for x in torch.randn(50, 16, 8):
    one, two = x + 0.2 * torch.randn_like(x), x * (torch.rand_like(x) > 0.2)
    loss = distance(one, two) + distance(two, one)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
            slow.lerp_(fast, 0.05)
