# InfoGAN: three optimizers, and the third holds every parameter that the other two hold.
# source: eriklindernoren/PyTorch-GAN implementations/infogan/infogan.py
from itertools import chain

import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(6)
N_CLASSES, CODE, LATENT = 3, 2, 4


class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 24), nn.LeakyReLU(0.2))
        self.adv = nn.Linear(24, 1)
        self.aux = nn.Linear(24, N_CLASSES)
        self.latent = nn.Linear(24, CODE)

    def forward(self, x):
        h = self.body(x)
        return self.adv(h), self.aux(h), self.latent(h)


gen = nn.Sequential(nn.Linear(LATENT + N_CLASSES + CODE, 24), nn.ReLU(), nn.Linear(24, 5))
dis = D()
opt_g = optim.Adam(gen.parameters(), lr=2e-3)
opt_d = optim.Adam(dis.parameters(), lr=2e-3)
opt_info = optim.Adam(chain(gen.parameters(), dis.parameters()), lr=2e-3)


def sample(n):
    y = torch.randint(0, N_CLASSES, (n,))
    code = torch.rand(n, CODE) * 2 - 1
    return y, code, torch.cat([torch.randn(n, LATENT), F.one_hot(y, N_CLASSES).float(), code], 1)


for step in range(30):
    real = torch.randn(16, 5) + 1
    ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
    opt_g.zero_grad()
    _, _, z = sample(16)
    fake = gen(z)
    F.mse_loss(dis(fake)[0], ones).backward()
    opt_g.step()

    opt_d.zero_grad()
    d_loss = (F.mse_loss(dis(real)[0], ones) + F.mse_loss(dis(fake.detach())[0], zeros)) / 2
    d_loss.backward()
    opt_d.step()

    opt_info.zero_grad()
    y, code, z = sample(16)
    _, label, latent = dis(gen(z))
    info_loss = F.cross_entropy(label, y) + 0.1 * F.mse_loss(latent, code)
    info_loss.backward()
    opt_info.step()
    if step % 10 == 0:
        print(step, round(info_loss.item(), 4))
