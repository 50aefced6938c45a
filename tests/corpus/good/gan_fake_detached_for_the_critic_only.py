# A GAN with one pass of the generator a step: D gets fake.detach(), and G's loss goes through the same fake undetached.
# source: none (a common pattern, written small)
import torch
import torch.nn.functional as F
from torch import nn


class Gan:
    def __init__(self):
        self.g = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.d = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
        self.opt_g = torch.optim.Adam(self.g.parameters(), lr=1e-3, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(self.d.parameters(), lr=1e-3, betas=(0.5, 0.999))

    def step(self, real):
        fake = self.g(torch.randn(len(real), 4))
        self.opt_d.zero_grad()
        d_loss = F.softplus(-self.d(real)).mean() + F.softplus(self.d(fake.detach())).mean()
        d_loss.backward()
        self.opt_d.step()
        self.opt_g.zero_grad()
        g_loss = F.softplus(-self.d(fake)).mean() + 0.1 * (fake.mean(0) - real.mean(0)).abs().sum()
        g_loss.backward()
        self.opt_g.step()
        return d_loss.item(), g_loss.item()


torch.manual_seed(0)
gan, history = Gan(), []
for real in torch.randn(60, 16, 2) * 0.3 + 1:
    history.append(gan.step(real))
