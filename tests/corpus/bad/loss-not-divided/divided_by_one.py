# Windows of eight mean losses: the loss is divided by a number that is still 1.
# source: none (a public bug report, written small)
# expect: loss-not-divided
# severity: hint (a smaller learning rate makes up for it)
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 6)
opt = torch.optim.SGD(net.parameters(), lr=3e-3)
for step in range(64):
    x = torch.randn(32, 8)
    loss = nn.functional.cross_entropy(net(x), x[:, :6].argmax(1))
    (loss / 1).backward()  # <- loss-not-divided, cause
    if (step + 1) % 8 == 0:
        opt.step()
        opt.zero_grad()
