# A GAN that updates the generator first: its backward fills the discriminator too, which is cleared before its own.
# source: eriklindernoren/PyTorch-GAN implementations/gan/gan.py
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


class Generator(nn.Module):
    def __init__(self, latent_dim):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(latent_dim, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 3), nn.Tanh()
        )

    def forward(self, z):
        return self.model(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(3, 24), nn.LeakyReLU(0.2, inplace=True), nn.Linear(24, 1), nn.Sigmoid())

    def forward(self, img):
        return self.model(img)


adversarial_loss = torch.nn.BCELoss()
generator, discriminator = Generator(5), Discriminator()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
dataloader = DataLoader(TensorDataset(torch.rand(128, 3) * 0.4), batch_size=16, shuffle=True)

for _epoch in range(2):
    for (imgs,) in dataloader:
        valid = torch.ones(imgs.size(0), 1)
        fake = torch.zeros(imgs.size(0), 1)

        optimizer_g.zero_grad()
        z = torch.randn(imgs.shape[0], 5)
        gen_imgs = generator(z)
        g_loss = adversarial_loss(discriminator(gen_imgs), valid)
        g_loss.backward()
        optimizer_g.step()

        optimizer_d.zero_grad()
        real_loss = adversarial_loss(discriminator(imgs), valid)
        fake_loss = adversarial_loss(discriminator(gen_imgs.detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()
        optimizer_d.step()
print(f"[D loss: {d_loss.item():.4f}] [G loss: {g_loss.item():.4f}]")
