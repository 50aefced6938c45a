# The error rate is added to the loss as a penalty, but argmax and comparison cut it off.
# source: none (a public bug report, written small)
# expect: loss-term-detached
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 6)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for _step in range(40):
    x = torch.randn(32, 8)
    y = x[:, :6].argmax(1)
    out = net(x)
    ce = nn.functional.cross_entropy(out, y)
    penalty = (out.argmax(1) != y).float().mean()  # <- cause
    loss = ce + 0.8 * penalty
    opt.zero_grad()
    loss.backward()  # <- loss-term-detached
    opt.step()
