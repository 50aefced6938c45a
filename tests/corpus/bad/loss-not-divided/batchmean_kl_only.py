# Distillation over windows of eight: "batchmean" is a mean over the rows, and nobody divides by the eight.
# source: none (a public bug report, written small)
# expect: loss-not-divided
# severity: hint (a smaller learning rate makes up for it)
import torch
from torch import nn

F = nn.functional
torch.manual_seed(0)
net, big = nn.Linear(8, 6), nn.Linear(8, 6).requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=3e-3)
for step in range(64):
    x = torch.randn(32, 8)
    F.kl_div(net(x).log_softmax(-1), big(x).softmax(-1), reduction="batchmean").backward()  # <- loss-not-divided, cause
    if (step + 1) % 8 == 0:
        opt.step()
        opt.zero_grad()
