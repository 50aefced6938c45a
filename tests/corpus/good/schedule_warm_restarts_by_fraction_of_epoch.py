# Cosine annealing with warm restarts, given the epoch as a fraction after every batch; at the end of each cycle, where
# the rate is almost zero, a snapshot is kept, and the snapshots vote.
# source: docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.html,
#   arxiv.org/abs/1704.00109 (snapshot ensembles)
import copy

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

torch.manual_seed(202)
x = torch.randn(320, 2)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
scheduler = CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
snapshots, iters = [], 8
for epoch in range(14):
    for i, batch in enumerate(torch.randperm(256).split(32)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
        scheduler.step(epoch + (i + 1) / iters)
    print(epoch, f"loss {loss.item():.3f} lr {optimizer.param_groups[0]['lr']:.3f}")
    if epoch in (1, 5, 13):
        snapshots.append(copy.deepcopy(model).eval())
with torch.no_grad():
    votes = torch.stack([snapshot(x[256:]).softmax(1) for snapshot in snapshots]).mean(0)
print("ensemble accuracy", (votes.argmax(1) == y[256:]).float().mean().item())
