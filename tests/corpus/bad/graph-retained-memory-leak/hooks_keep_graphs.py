# A forward hook is registered again and again, never removed, and each one keeps all outputs with their graphs.
# source: none (a public bug report, written small)
# expect: graph-retained-memory-leak
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-2)


def watch_layer(layer):
    kept = []
    layer.register_forward_hook(lambda m, i, o: kept.append(o))  # never removed  # <- graph-retained-memory-leak, cause


for step in range(200):
    if step % 10 == 0:
        watch_layer(net[0])
    x = torch.randn(16, 8)
    loss = nn.functional.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
