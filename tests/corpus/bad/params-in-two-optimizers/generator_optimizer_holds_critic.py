# A GAN whose generator's optimizer was given the critic's parameters: the critic helps the generator to fool it.
# source: eriklindernoren/PyTorch-GAN implementations/gan/gan.py, with the wrong net in opt_g
# expect: params-in-two-optimizers
import torch
from torch import nn

torch.manual_seed(3)
generator = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 2))
discriminator = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
adversarial_loss = nn.BCEWithLogitsLoss()
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_g = torch.optim.Adam(discriminator.parameters(), lr=2e-4)  # <- params-in-two-optimizers, cause

for i in range(20):
    real_imgs = torch.randn(32, 2) * 0.5 + 1
    valid, fake = torch.ones(32, 1), torch.zeros(32, 1)

    opt_g.zero_grad()
    gen_imgs = generator(torch.randn(32, 8))
    g_loss = adversarial_loss(discriminator(gen_imgs), valid)
    g_loss.backward()
    opt_g.step()

    opt_d.zero_grad()
    real_loss = adversarial_loss(discriminator(real_imgs), valid)
    fake_loss = adversarial_loss(discriminator(gen_imgs.detach()), fake)
    d_loss = (real_loss + fake_loss) / 2
    d_loss.backward()
    opt_d.step()
    if i % 5 == 0:
        print(f"[Batch {i}] [D loss: {d_loss.item():.4f}] [G loss: {g_loss.item():.4f}]")
