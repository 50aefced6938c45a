# MAML of second order with functional_call: each task's outer loss goes back by itself, divided by the tasks.
# source: none (a common pattern, written small)
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(3)
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(30):
    optimizer.zero_grad()
    for amplitude in torch.rand(3):
        x = torch.randn(10, 1)
        y = amplitude * x.sin()
        slow = dict(net.named_parameters())
        inner = nn.functional.mse_loss(functional_call(net, slow, (x,)), y)
        grads = torch.autograd.grad(inner, list(slow.values()), create_graph=True)
        fast = {name: p - 0.1 * g for (name, p), g in zip(slow.items(), grads, strict=True)}
        (nn.functional.mse_loss(functional_call(net, fast, (x,)), y) / 3).backward()
    optimizer.step()
