# Diffusion for recommendation: the denoising MLP has a detach() in its loop over the layers, left over from debugging.
# source: user683/DRGO#1
# expect: graph-broken
# severity: hint (some cut off a part on purpose)
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn


class DenoiseMLP(nn.Module):
    def __init__(self, dims=(16, 24, 16), emb_size=6):
        super().__init__()
        self.emb_layer = nn.Linear(emb_size, emb_size)
        sizes = [dims[0] + emb_size, *dims[1:]]
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))
        self.out = nn.Linear(dims[-1], dims[0])

    def forward(self, x, timesteps):
        frequencies = torch.arange(1, 4).float()
        angle = timesteps.unsqueeze(1) * frequencies
        emb = self.emb_layer(torch.cat([angle.sin(), angle.cos()], dim=1))
        h = torch.cat([F.normalize(x), emb], dim=1)
        for layer in self.layers:
            h = torch.tanh(layer(h))
            h = h.detach()  # <- cause
        return self.out(h)


class GaussianDiffusion:
    def __init__(self, steps=10):
        self.alphas = torch.linspace(0.95, 0.2, steps)

    def training_losses(self, model, x_start):
        t = torch.randint(len(self.alphas), (len(x_start),))
        alpha = self.alphas[t].unsqueeze(1)
        x_t = alpha.sqrt() * x_start + (1 - alpha).sqrt() * torch.randn_like(x_start)
        return (model(x_t, t / len(self.alphas)) - x_start).square().mean()


torch.manual_seed(7)
user_embeddings = torch.randn(80, 4) @ torch.randn(4, 16)
denoise_model, diffusion = DenoiseMLP(), GaussianDiffusion()
optimizer = torch.optim.Adam(denoise_model.parameters(), lr=3e-3)
for epoch in range(4):
    for users in torch.randperm(80).split(20):
        optimizer.zero_grad()
        loss = diffusion.training_losses(denoise_model, user_embeddings[users])
        loss.backward()  # <- graph-broken
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
