# Image translation that is sampled in train mode on purpose: dropout is the noise of the generator, and batch norm uses
# the statistics of the test batch; no_grad is on, eval() is never called.
# source: phillipi/pix2pix#176, phillipi/pix2pix#34, NVIDIA/pix2pixHD#175
import torch
from torch import nn

torch.manual_seed(268)
generator = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.Dropout(0.3), nn.Conv2d(12, 1, 3, padding=1)
)
patches = nn.Sequential(nn.Conv2d(2, 12, 3, stride=2), nn.LeakyReLU(0.2), nn.Conv2d(12, 1, 2))
opt_g = torch.optim.Adam(generator.parameters(), lr=3e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(patches.parameters(), lr=1e-3, betas=(0.5, 0.999))
edges = (torch.rand(64, 1, 8, 8) > 0.7).float()
photos = nn.functional.avg_pool2d(edges, 3, stride=1, padding=1) * 2 - 1


def gan(score, real):
    return nn.functional.binary_cross_entropy_with_logits(score, torch.full_like(score, float(real)))


for epoch in range(4):
    for rows in torch.randperm(56).split(8):
        fake = generator(edges[rows])
        opt_d.zero_grad()
        pair_fake, pair_real = torch.cat([edges[rows], fake.detach()], 1), torch.cat([edges[rows], photos[rows]], 1)
        loss_d = 0.5 * (gan(patches(pair_fake), False) + gan(patches(pair_real), True))
        loss_d.backward()
        opt_d.step()
        patches.requires_grad_(False)
        opt_g.zero_grad()
        l1 = (fake - photos[rows]).abs().mean()
        (gan(patches(torch.cat([edges[rows], fake], 1)), True) + 100 * l1).backward()
        opt_g.step()
        patches.requires_grad_(True)
    with torch.no_grad():
        samples = torch.stack([generator(edges[56:]) for _ in range(3)])
    print(f"{epoch} l1 {l1.item():.4f} d {loss_d.item():.3f} spread of samples {samples.std(0).mean().item():.4f}")
