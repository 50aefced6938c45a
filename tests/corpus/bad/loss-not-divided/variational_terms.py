# A variational autoencoder: reconstruction plus a divergence that is a sum over the batch divided by its size.
# source: AntixK/PyTorch-VAE models/vanilla_vae.py, trained with accumulation
# expect: loss-not-divided
# severity: hint (a smaller learning rate makes up for it)
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self, dim=12, latent=3):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(dim, 2 * latent), nn.Linear(latent, dim)

    def forward(self, x):
        mu, log_var = self.encoder(x).chunk(2, dim=1)
        z = mu + (0.5 * log_var).exp() * torch.randn_like(mu)
        return self.decoder(z), mu, log_var


def loss_function(recons, x, mu, log_var):
    kld_loss = -0.5 * torch.sum(1 + log_var - mu**2 - log_var.exp()) / x.shape[0]
    return F.mse_loss(recons, x) + kld_loss


torch.manual_seed(4)
vae = VAE()
optimizer = torch.optim.SGD(vae.parameters(), lr=0.01)
for update in range(8):
    optimizer.zero_grad()
    for _ in range(3):
        x = torch.randn(16, 12)
        loss = loss_function(*vae(x)[:1], x, *vae(x)[1:])  # <- cause
        loss.backward()  # <- loss-not-divided, cause
    optimizer.step()
    print(update, loss.item())
