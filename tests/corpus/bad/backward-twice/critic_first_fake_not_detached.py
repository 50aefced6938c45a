# A GAN in which the discriminator's update goes back into the generator, whose own loss then needs the freed graph.
# source: eriklindernoren/PyTorch-GAN gan.py, with the mistake put in
# expect: backward-twice
# raises: RuntimeError
import torch
from torch import nn

torch.manual_seed(6)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid())
criterion = nn.BCELoss()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
real_label, fake_label = torch.ones(16, 1), torch.zeros(16, 1)
for i in range(12):
    gen_imgs = generator(torch.randn(16, 4))
    output = discriminator(gen_imgs)  # <- cause
    d_loss = criterion(discriminator(torch.randn(16, 2) + 2), real_label) + criterion(output, fake_label)
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    g_loss = criterion(discriminator(gen_imgs), real_label)
    optimizer_g.zero_grad()
    g_loss.backward()  # <- backward-twice
    optimizer_g.step()
    print(i, d_loss.item(), g_loss.item())
