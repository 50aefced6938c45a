# The R1 penalty is taken at every fourth update only, and its gradient has no graph, so it regularizes nothing.
# source: brownvc/R3GAN#9, the lazy penalty, with create_graph=True left out
# expect: loss-term-detached
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net_d = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
net_g = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer_d = torch.optim.Adam(net_d.parameters(), lr=1e-3, betas=(0.0, 0.99))
optimizer_g = torch.optim.Adam(net_g.parameters(), lr=1e-3, betas=(0.0, 0.99))


def zero_centered_penalty(samples, logits):
    (gradient,) = torch.autograd.grad(logits.sum(), samples, retain_graph=True)  # <- cause
    return gradient.square().sum(1).mean()


for iteration in range(40):
    lazy = iteration % 4 == 0
    real = torch.randn(32, 2).requires_grad_(lazy)
    logits = net_d(real)
    fake = net_g(torch.randn(32, 3))
    loss_d = F.softplus(-logits).mean() + F.softplus(net_d(fake.detach())).mean()
    if lazy:
        loss_d = loss_d + 4 * zero_centered_penalty(real, logits)  # <- cause
    optimizer_d.zero_grad()
    loss_d.backward()  # <- loss-term-detached
    optimizer_d.step()
    loss_g = F.softplus(-net_d(fake)).mean()
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
print(f"loss_d {loss_d.item():.4f} loss_g {loss_g.item():.4f}")
