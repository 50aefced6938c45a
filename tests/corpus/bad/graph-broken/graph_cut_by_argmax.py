# The whole loss is computed from an argmax, through which there is no way back.
# source: none (a public bug report, written small)
# expect: graph-broken
# raises: RuntimeError
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 6)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for _step in range(5):
    x = torch.randn(32, 8)
    pred = net(x).argmax(1).float()  # <- cause
    loss = (pred - x[:, 0]).abs().mean()
    opt.zero_grad()
    loss.backward()  # <- graph-broken
    opt.step()
