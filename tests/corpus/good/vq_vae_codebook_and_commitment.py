# A VQ-VAE: codebook and commitment each detach the other side, and the decoder gets a straight-through z.
# source: none (a common pattern, written small)
import torch
from torch import nn


class VQVAE(nn.Module):
    def __init__(self, dim=8, latent=3, codes=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 16), nn.ReLU(), nn.Linear(16, dim))
        self.codebook = nn.Embedding(codes, latent)

    def forward(self, x):
        z = self.encoder(x)
        index = torch.cdist(z, self.codebook.weight).argmin(1)
        code = self.codebook(index)
        codebook_loss = (code - z.detach()).square().mean()
        commitment = (z - code.detach()).square().mean()
        return self.decoder(z + (code - z).detach()), codebook_loss + 0.25 * commitment


torch.manual_seed(3)
model = VQVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for x in torch.randn(60, 32, 2) @ torch.randn(2, 8):
    restored, vq_loss = model(x)
    loss = nn.functional.mse_loss(restored, x) + vq_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
