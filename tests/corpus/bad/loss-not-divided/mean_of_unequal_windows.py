# Windows of four means over 2 to 64 targets: a target of a short batch counts many times as much as one of a long one.
# source: none (a public bug report, written small)
# expect: loss-not-divided
# severity: hint (each batch may be meant to count the same)
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Embedding(20, 20)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(80):
    y = torch.randint(1, 20, (64,))
    y[torch.randint(2, 64, ()) :] = -100  # padding: 2 to 64 real tokens
    loss = nn.functional.cross_entropy(net(y.clamp(min=0)), y) / 4  # <- cause
    loss.backward()  # <- loss-not-divided, cause
    if (step + 1) % 4 == 0:
        opt.step()
        opt.zero_grad()
