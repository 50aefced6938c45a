# The first layer is frozen half-way: its gradients stay as zeros, and Adam's averages go on moving it.
# source: none (a common mistake, written small)
# expect: optimizer-params-frozen
# cause: not found (freezing, clearing and the optimizer's groups are all places to mend it)
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(40):
    if step == 20:
        net[0].requires_grad_(False)  # <- cause
    x = torch.randn(16, 8)
    opt.zero_grad(set_to_none=False)
    nn.functional.mse_loss(net(x), x[:, :1]).backward()
    opt.step()  # <- optimizer-params-frozen
