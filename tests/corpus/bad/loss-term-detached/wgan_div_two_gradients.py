# Wasserstein divergence: neither of the two gradients of the critic has create_graph=True, so div_gp moves no weight.
# source: eriklindernoren/PyTorch-GAN wgan_div.py, with the mistake put in
# expect: loss-term-detached
import torch
from torch import autograd, nn

torch.manual_seed(5)
k, p = 2, 6
generator = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
for i in range(12):
    real_imgs = (0.5 * torch.randn(16, 2) + 1).requires_grad_()
    z = torch.randn(16, 4)
    optimizer_d.zero_grad()
    fake_imgs = generator(z)
    real_validity = discriminator(real_imgs)
    fake_validity = discriminator(fake_imgs)
    ones = torch.ones(16, 1)
    real_grad = autograd.grad(real_validity, real_imgs, ones, retain_graph=True, only_inputs=True)[0]  # <- cause
    real_grad_norm = real_grad.view(16, -1).pow(2).sum(1) ** (p / 2)
    fake_grad = autograd.grad(fake_validity, fake_imgs, ones, retain_graph=True, only_inputs=True)[0]  # <- cause
    fake_grad_norm = fake_grad.view(16, -1).pow(2).sum(1) ** (p / 2)
    div_gp = torch.mean(real_grad_norm + fake_grad_norm) * k / 2
    d_loss = -torch.mean(real_validity) + torch.mean(fake_validity) + div_gp
    d_loss.backward()  # <- loss-term-detached
    optimizer_d.step()
    if i % 3 == 0:
        optimizer_g.zero_grad()
        g_loss = -torch.mean(discriminator(generator(z)))
        g_loss.backward()
        optimizer_g.step()
        print(f"[D loss: {d_loss.item():.4f}] [G loss: {g_loss.item():.4f}]")
