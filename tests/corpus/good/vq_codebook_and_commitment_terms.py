# A VQ-VAE with a trained codebook: one term moves the codes towards the detached encoder, the other the encoder towards
# the detached codes, and the reconstruction passes straight through.
# source: ritheshkumar95/pytorch-vqvae vqvae.py
import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(232)
encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
codebook = nn.Embedding(16, 4)
nn.init.uniform_(codebook.weight, -1, 1)
decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 12))
model = nn.ModuleDict({"encoder": encoder, "codebook": codebook, "decoder": decoder})
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, amsgrad=True)
prototypes = torch.randn(10, 12)

for step in range(120):
    x = prototypes[torch.randint(0, 10, (32,))] + 0.05 * torch.randn(32, 12)
    z_e = encoder(x)
    index = torch.cdist(z_e.detach(), codebook.weight.detach()).argmin(1)
    z_q = codebook(index)
    z_q_st = z_e + (z_q - z_e).detach()
    loss_recons = mse_loss(decoder(z_q_st), x)
    loss_vq = mse_loss(z_q, z_e.detach())
    loss_commit = mse_loss(z_e, z_q.detach())
    loss = loss_recons + loss_vq + 0.25 * loss_commit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, f"reconstruction {loss_recons.item():.4f} codes in use {index.unique().numel()}")
