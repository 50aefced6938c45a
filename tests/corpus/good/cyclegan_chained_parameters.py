# CycleGAN: one optimizer over two generators, one over two discriminators, a buffer of old fakes, and the
# discriminators frozen during the generators' backward. Each discriminator has its own backward before one step.
# source: junyanz/pytorch-CycleGAN-and-pix2pix models/cycle_gan_model.py
import itertools
import random

import torch
import torch.nn as nn

torch.manual_seed(5)
random.seed(5)


class CycleGAN:
    def __init__(self):
        self.net_ga, self.net_gb = nn.Linear(4, 4), nn.Linear(4, 4)
        self.net_da = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.net_db = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.optimizer_g = torch.optim.Adam(
            itertools.chain(self.net_ga.parameters(), self.net_gb.parameters()), lr=3e-3
        )
        self.optimizer_d = torch.optim.Adam(
            itertools.chain(self.net_da.parameters(), self.net_db.parameters()), lr=3e-3
        )
        self.pool = []

    def set_requires_grad(self, nets, flag):
        for net in nets:
            for param in net.parameters():
                param.requires_grad = flag

    def backward_d(self, net_d, real, fake):
        self.pool.append(fake.detach())
        old = random.choice(self.pool[-10:])
        loss = ((net_d(real) - 1) ** 2).mean() * 0.5 + (net_d(old) ** 2).mean() * 0.5
        loss.backward()
        return loss

    def optimize_parameters(self, real_a, real_b):
        fake_b, fake_a = self.net_ga(real_a), self.net_gb(real_b)
        rec_a, rec_b = self.net_gb(fake_b), self.net_ga(fake_a)
        self.set_requires_grad([self.net_da, self.net_db], False)
        self.optimizer_g.zero_grad()
        loss_g = ((self.net_da(fake_b) - 1) ** 2).mean() + ((self.net_db(fake_a) - 1) ** 2).mean()
        loss_cycle = 10 * ((rec_a - real_a).abs().mean() + (rec_b - real_b).abs().mean())
        (loss_g + loss_cycle).backward()
        self.optimizer_g.step()
        self.set_requires_grad([self.net_da, self.net_db], True)
        self.optimizer_d.zero_grad()
        self.backward_d(self.net_da, real_b, fake_b)
        self.backward_d(self.net_db, real_a, fake_a)
        self.optimizer_d.step()
        return loss_cycle.item()


model = CycleGAN()
losses = [model.optimize_parameters(torch.rand(8, 4), -torch.rand(8, 4)) for _ in range(40)]
print(f"cycle loss {losses[0]:.3f} -> {losses[-1]:.3f}")
