# The optimizer is made again with a lower rate by a helper; the schedule moves the one that was dropped.
# source: none (a common mistake, written small)
# expect: scheduler-before-optimizer
import torch
from torch import nn


def make_optimizer(net, lr):
    return torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=lr)


def run_epoch(net, optimizer, batches):
    for x in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), x[:, :2].argmax(1))
        loss.backward()
        optimizer.step()


torch.manual_seed(2)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = make_optimizer(net, lr=1e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)  # <- cause
optimizer = make_optimizer(net, lr=3e-3)  # <- cause
for _ in range(5):
    run_epoch(net, optimizer, torch.randn(6, 16, 6))
    scheduler.step()  # <- scheduler-before-optimizer
