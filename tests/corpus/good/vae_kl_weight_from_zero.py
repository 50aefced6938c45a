# A VAE whose divergence is weighted by 0 at first, and by more with each step, so that at first one head gets zeros.
# source: none (a common pattern, written small)
import torch
from torch import nn


class VAE(nn.Module):
    def __init__(self, dim=8, latent=2):
        super().__init__()
        self.encoder, self.mu, self.log_var = nn.Linear(dim, 16), nn.Linear(16, latent), nn.Linear(16, latent)
        self.decoder = nn.Linear(latent, dim)

    def forward(self, x):
        h = torch.relu(self.encoder(x))
        mu, log_var = self.mu(h), self.log_var(h)
        return self.decoder(mu + (0.5 * log_var).exp() * torch.randn_like(mu)), mu, log_var


torch.manual_seed(16)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=3e-3)
for step, x in enumerate(torch.randn(80, 16, 2) @ torch.randn(2, 8)):
    beta = min(1.0, max(0.0, (step - 10) / 40))
    restored, mu, log_var = vae(x)
    kl = -0.5 * (1 + log_var - mu.square() - log_var.exp()).sum(1).mean()
    loss = (restored - x).square().sum(1).mean() + beta * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
