# A trainer's generator loss was copied from the critic's, with its detach(): only the reconstruction moves the weights.
# source: none (a common mistake, written small)
# expect: loss-term-detached
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce


class Trainer:
    def __init__(self):
        self.net_g = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 6))
        self.net_d = nn.Sequential(nn.Linear(6, 20), nn.LeakyReLU(0.2), nn.Linear(20, 1))
        self.optim_g = torch.optim.Adam(self.net_g.parameters(), lr=2e-3, betas=(0.5, 0.999))
        self.optim_d = torch.optim.Adam(self.net_d.parameters(), lr=2e-3, betas=(0.5, 0.999))
        self.ones, self.zeros = torch.ones(12, 1), torch.zeros(12, 1)

    def critic_loss(self, real, fake):
        return bce(self.net_d(real), self.ones) + bce(self.net_d(fake.detach()), self.zeros)

    def generator_loss(self, real, fake):
        fooling = bce(self.net_d(fake.detach()), self.ones)  # <- cause
        content = (fake - real).abs().mean()
        return content + 0.01 * fooling

    def step(self, masked, real):
        fake = self.net_g(masked)
        self.optim_d.zero_grad()
        self.critic_loss(real, fake).backward()
        self.optim_d.step()
        self.optim_g.zero_grad()
        self.generator_loss(real, fake).backward()  # <- loss-term-detached
        self.optim_g.step()


torch.manual_seed(3)
trainer = Trainer()
for real in torch.randn(40, 12, 6):
    trainer.step(real * (torch.rand(12, 6) > 0.3), real)
