# A GAN's generator has two terms, and the adversarial one is computed on the detached fake: it reaches the critic only.
# source: none (a public bug report, written small)
# expect: loss-term-detached
import torch
from torch import nn

torch.manual_seed(0)
g, d = nn.Linear(4, 8), nn.Linear(8, 1)
opt_g = torch.optim.Adam(g.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(d.parameters(), lr=1e-3)
for _step in range(40):
    z, real = torch.randn(16, 4), torch.randn(16, 8)
    fake = g(z)
    opt_d.zero_grad()
    (d(fake.detach()).mean() - d(real).mean()).backward()
    opt_d.step()
    opt_g.zero_grad()
    adversarial = -d(fake.detach()).mean()  # reaches d's weights only  # <- cause
    loss_g = adversarial + (fake - real).abs().mean()
    loss_g.backward()  # <- loss-term-detached
    opt_g.step()
