# A physics-informed network: the loss holds second derivatives with respect to the input, taken with create_graph; Adam
# first, then LBFGS with a strong-Wolfe line search on the same parameters.
# source: arxiv.org/abs/1711.10561, docs.pytorch.org/docs/stable/generated/torch.optim.LBFGS.html
import math

import torch
from torch import nn
from torch.autograd import grad

torch.manual_seed(103)
net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))


def pinn_loss():
    t = (torch.rand(48, 1) * math.pi).requires_grad_(True)
    u = net(t)
    du = grad(u, t, torch.ones_like(u), create_graph=True)[0]
    d2u = grad(du.sum(), t, create_graph=True)[0]
    edge = torch.tensor([[0.0], [math.pi / 2]])
    return (d2u + u).pow(2).mean() + 5 * (net(edge) - torch.tensor([[0.0], [1.0]])).pow(2).mean()


adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(80):
    adam.zero_grad()
    loss = pinn_loss()
    loss.backward()
    adam.step()
    if step % 40 == 0:
        print("adam", step, loss.item())

lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=8, line_search_fn="strong_wolfe")


def closure():
    torch.manual_seed(0)
    lbfgs.zero_grad()
    loss = pinn_loss()
    loss.backward()
    return loss


for _ in range(8):
    loss = lbfgs.step(closure)
print("lbfgs", loss.item())
x = torch.linspace(0, math.pi, 20).unsqueeze(1)
with torch.no_grad():
    print("worst error", (net(x) - x.sin()).abs().max().item())
