# A WGAN with a divergence penalty, in which the critic's turn ends with a step of the generator's optimizer.
# source: eriklindernoren/PyTorch-GAN wgan_div.py, with the mistake put in
# expect: never-steps
import torch
from torch import autograd, nn

torch.manual_seed(15)
k, p, n_critic, latent_dim = 2, 6, 3, 4
generator = nn.Sequential(nn.Linear(latent_dim, 24), nn.LeakyReLU(0.2), nn.Linear(24, 2), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
for i in range(18):
    real_imgs = (0.3 * torch.randn(16, 2)).requires_grad_(True)
    optimizer_g.zero_grad()
    optimizer_d.zero_grad()
    fake_imgs = generator(torch.randn(16, latent_dim))
    real_validity, fake_validity = discriminator(real_imgs), discriminator(fake_imgs)
    ones = torch.ones_like(real_validity)
    real_grad = autograd.grad(real_validity, real_imgs, ones, create_graph=True, retain_graph=True)[0]
    fake_grad = autograd.grad(fake_validity, fake_imgs, ones, create_graph=True, retain_graph=True)[0]
    real_norm = real_grad.pow(2).sum(1) ** (p / 2)
    fake_norm = fake_grad.pow(2).sum(1) ** (p / 2)
    div_gp = torch.mean(real_norm + fake_norm) * k / 2
    d_loss = -real_validity.mean() + fake_validity.mean() + div_gp
    d_loss.backward()  # <- never-steps
    optimizer_g.step()  # <- cause

    optimizer_g.zero_grad()
    if i % n_critic == 0:
        g_loss = -discriminator(generator(torch.randn(16, latent_dim))).mean()
        g_loss.backward()
        optimizer_g.step()
        print(i, d_loss.item(), g_loss.item())
