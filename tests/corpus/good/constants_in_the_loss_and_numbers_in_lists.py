# Constants of the data are added to a likelihood so that it can be compared, and losses go into lists by item().
# source: none (a common pattern, written small)
import math

import torch
from torch import nn

torch.manual_seed(14)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
history = {"loss": [], "error": [], "norm": []}
for x in torch.randn(80, 16, 4):
    mean, log_std = net(x).chunk(2, dim=1)
    y = x[:, :1] * 2 + 0.3 * torch.randn(16, 1)
    error = ((y - mean) / log_std.exp()).square().mean()
    loss = 0.5 * error + log_std.mean() + 0.5 * math.log(2 * math.pi) + y.var() * 0.01
    optimizer.zero_grad()
    loss.backward()
    history["norm"].append(nn.utils.clip_grad_norm_(net.parameters(), 5.0).item())
    optimizer.step()
    history["loss"].append(loss.item())
    history["error"].append(float(error))
print({name: sum(values) / len(values) for name, values in history.items()})
