# A GAN with two discriminator steps per generator step; the second one still carries the gradients of the first.
# source: ajbrock/BigGAN-PyTorch#25
# expect: missing-zero-grad
import torch
from torch import nn
from torch.optim import Adam

torch.manual_seed(2)
gen = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 2))
disc = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
g_optim = Adam(gen.parameters(), lr=1e-3, betas=(0.0, 0.999))
d_optim = Adam(disc.parameters(), lr=2e-3, betas=(0.0, 0.999))
num_d_steps = 2


def real_batch(n):
    angle = torch.rand(n) * 6.2832
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def toggle_grad(model, on_or_off):
    for param in model.parameters():
        param.requires_grad = on_or_off


for itr in range(15):
    d_optim.zero_grad()  # <- cause
    g_optim.zero_grad()
    toggle_grad(disc, True)
    toggle_grad(gen, False)
    for _ in range(num_d_steps):
        fake = gen(torch.randn(32, 8))  # <- cause
        d_loss = torch.relu(1 - disc(real_batch(32))).mean() + torch.relu(1 + disc(fake)).mean()
        d_loss.backward()  # <- cause
        d_optim.step()  # <- missing-zero-grad, cause

    toggle_grad(disc, False)
    toggle_grad(gen, True)
    g_optim.zero_grad()
    g_loss = -disc(gen(torch.randn(32, 8))).mean()
    g_loss.backward()
    g_optim.step()
    if itr % 5 == 0:
        print(f"itr {itr}: d {d_loss.item():.3f} g {g_loss.item():.3f}")
