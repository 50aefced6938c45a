# An adversarial autoencoder whose discriminator gets the codes undetached, after the generator's update.
# source: eriklindernoren/PyTorch-GAN aae.py, with the mistake put in
# expect: backward-twice
# raises: RuntimeError
import itertools

import torch
from torch import nn

torch.manual_seed(5)
latent_dim = 4
encoder = nn.Sequential(nn.Linear(12, 24), nn.LeakyReLU(0.2), nn.Linear(24, latent_dim))
decoder = nn.Sequential(nn.Linear(latent_dim, 24), nn.LeakyReLU(0.2), nn.Linear(24, 12), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(latent_dim, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid())
adversarial_loss, pixelwise_loss = nn.BCELoss(), nn.L1Loss()
optimizer_g = torch.optim.Adam(itertools.chain(encoder.parameters(), decoder.parameters()), lr=2e-4)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
for epoch in range(2):
    for real_imgs in torch.rand(40, 12).split(8):
        valid, fake = torch.ones(8, 1), torch.zeros(8, 1)
        optimizer_g.zero_grad()
        encoded_imgs = encoder(real_imgs)
        decoded_imgs = decoder(encoded_imgs)
        g_loss = 0.001 * adversarial_loss(discriminator(encoded_imgs), valid) + 0.999 * pixelwise_loss(
            decoded_imgs, real_imgs
        )
        g_loss.backward()
        optimizer_g.step()

        optimizer_d.zero_grad()
        z = torch.randn(8, latent_dim)
        real_loss = adversarial_loss(discriminator(z), valid)
        fake_loss = adversarial_loss(discriminator(encoded_imgs), fake)  # <- cause
        d_loss = 0.5 * (real_loss + fake_loss)
        d_loss.backward()  # <- backward-twice
        optimizer_d.step()
        print(epoch, d_loss.item(), g_loss.item())
