# A column of what sigmoid has returned is set to 0 in place, and backward() needs that output as it was.
# source: none (a public bug report, written small)
# expect: modified-in-place
# raises: RuntimeError
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 6)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for _step in range(5):
    x = torch.randn(32, 8)
    a = torch.sigmoid(net(x))
    a[:, 0] = 0  # <- cause
    loss = (a * 2).mean()
    opt.zero_grad()
    loss.backward()  # <- modified-in-place
    opt.step()
