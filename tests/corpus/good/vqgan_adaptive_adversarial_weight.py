# The adversarial term's weight is the ratio of two gradient norms at the decoder's last layer, detached and clamped,
# and is zero until the discriminator joins in: one term is multiplied by a number on purpose.
# source: CompVis/taming-transformers taming/modules/losses/vqperceptual.py
import torch
from torch import nn

torch.manual_seed(255)
encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))
decoder = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 16))
discriminator = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_ae = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3, betas=(0.5, 0.9))
opt_disc = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.9))
basis, start = torch.randn(3, 16), 30


def adaptive_weight(nll_loss, g_loss, last_layer):
    nll_grad = torch.autograd.grad(nll_loss, last_layer, retain_graph=True)[0]
    g_grad = torch.autograd.grad(g_loss, last_layer, retain_graph=True)[0]
    return (nll_grad.norm() / (g_grad.norm() + 1e-4)).clamp(0.0, 1e4).detach()


for step in range(90):
    x = torch.randn(32, 3) @ basis
    rebuilt = decoder(encoder(x))
    nll_loss = (x - rebuilt).abs().mean()
    g_loss = -discriminator(rebuilt).mean()
    factor = 0.8 if step >= start else 0.0
    d_weight = adaptive_weight(nll_loss, g_loss, decoder[-1].weight)
    loss = nll_loss + d_weight * factor * g_loss
    opt_ae.zero_grad()
    loss.backward()
    opt_ae.step()

    real, fake = discriminator(x), discriminator(rebuilt.detach())
    d_loss = factor * 0.5 * ((1 - real).relu().mean() + (1 + fake).relu().mean())
    opt_disc.zero_grad()
    d_loss.backward()
    opt_disc.step()
    if step % 18 == 0:
        print(f"{step} reconstruction {nll_loss.item():.3f} d {d_loss.item():.3f} weight {d_weight.item():.2f}")
