# The gradients are cleared before the last of four micro-batches, so three of four passes are thrown away.
# source: none (a public bug report, written small)
# expect: zero-grad-in-micro-batch
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=3e-3)
for _window in range(20):
    for micro in range(4):  # <- cause
        x = torch.randn(32, 8)
        if micro == 3:  # <- cause
            opt.zero_grad()  # <- zero-grad-in-micro-batch, cause
        (nn.functional.mse_loss(net(x), x[:, :1]) / 4).backward()
    opt.step()  # <- cause
