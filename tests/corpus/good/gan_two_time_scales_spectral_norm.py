# A GAN on two time scales: one step each, the critic with four times the generator's rate and spectral normalisation,
# which runs its power iteration in every forward of train mode, also in the generator's turn.
# source: bioinf-jku/TTUR README.md, arxiv.org/abs/1802.05957 (spectral normalisation)
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(248)
generator = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(spectral_norm(nn.Linear(2, 32)), nn.LeakyReLU(0.2), spectral_norm(nn.Linear(32, 1)))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=4e-3, betas=(0.0, 0.9))
decay_g = torch.optim.lr_scheduler.ExponentialLR(opt_g, 0.999)
decay_c = torch.optim.lr_scheduler.ExponentialLR(opt_c, 0.999)
mean = torch.tensor([2.0, -1.0])
for step in range(150):
    real = mean + 0.5 * torch.randn(48, 2)
    opt_c.zero_grad()
    with torch.no_grad():
        fake = generator(torch.randn(48, 4))
    loss_c = (1 - critic(real)).relu().mean() + (1 + critic(fake)).relu().mean()
    loss_c.backward()
    opt_c.step()

    critic.requires_grad_(False)
    opt_g.zero_grad()
    loss_g = -critic(generator(torch.randn(48, 4))).mean()
    loss_g.backward()
    opt_g.step()
    critic.requires_grad_(True)
    decay_g.step()
    decay_c.step()
    if step % 30 == 0:
        distance = (fake.mean(0) - mean).norm().item()
        print(f"{step} critic {loss_c.item():.3f} generator {loss_g.item():.3f} distance of the means {distance:.3f}")
