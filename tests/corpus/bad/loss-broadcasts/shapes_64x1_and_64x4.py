# The model gives one number and the target has four: each is compared with the one, and PyTorch only warns.
# source: none (a public bug report, written small)
# expect: loss-broadcasts
# warns: UserWarning
# cause: not found (the shape of the target, or that of the model's output)
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 1)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for _step in range(40):
    x = torch.randn(64, 8)
    target = x[:, :4]  # <- cause
    loss = nn.functional.mse_loss(net(x), target)  # <- loss-broadcasts
    opt.zero_grad()
    loss.backward()
    opt.step()
