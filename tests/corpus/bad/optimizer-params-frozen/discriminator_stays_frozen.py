# A GAN that freezes the discriminator for the generator's turn and never unfreezes it for its own.
# source: NVlabs/denoising-diffusion-gan#6
# expect: optimizer-params-frozen
import torch
import torch.nn.functional as F
from torch import nn


def set_requires_grad(net, flag):
    for p in net.parameters():
        p.requires_grad = flag


def train(iterations=20):
    net_g = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
    net_d = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    optimizer_g = torch.optim.Adam(net_g.parameters(), lr=1e-3, betas=(0.5, 0.9))
    optimizer_d = torch.optim.Adam(net_d.parameters(), lr=1e-3, betas=(0.5, 0.9))  # <- optimizer-params-frozen
    set_requires_grad(net_d, False)  # <- cause

    for iteration in range(iterations):
        real = torch.randn(24, 2) * 0.3 + torch.tensor([1.0, -1.0])  # <- cause
        fake = net_g(torch.randn(24, 6))

        net_d.zero_grad()  # <- cause
        err_d = F.softplus(-net_d(real)).mean() + F.softplus(net_d(fake)).mean()
        err_d.backward()
        optimizer_d.step()

        net_g.zero_grad()
        err_g = F.softplus(-net_d(net_g(torch.randn(24, 6)))).mean()
        err_g.backward()
        optimizer_g.step()
        if iteration % 5 == 0:
            print(f"iteration {iteration}, G {err_g.item():.3f}, D {err_d.item():.3f}")


torch.manual_seed(2)
train()
