# Diffusion: the network learns to predict the noise of a random step; an average of its weights, kept by lerp_, draws
# samples from time to time under inference_mode, through the same schedule of buffers.
# source: lucidrains/denoising-diffusion-pytorch denoising_diffusion_pytorch/denoising_diffusion_pytorch.py
import copy
import math

import torch
from torch import nn

torch.manual_seed(260)
steps = 20
beta = torch.linspace(0.01, 0.25, steps)
alpha_bar = (1 - beta).cumprod(0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(steps, 32)
        self.inp, self.out = nn.Linear(2, 32), nn.Sequential(nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 2))

    def forward(self, x, t):
        return self.out(self.inp(x) + self.time(t))


@torch.inference_mode()
def sample(net, n):
    x = torch.randn(n, 2)
    for t in range(steps - 1, -1, -1):
        eps = net(x, torch.full((n,), t))
        x = (x - beta[t] / (1 - alpha_bar[t]).sqrt() * eps) / (1 - beta[t]).sqrt()
        if t:
            x = x + beta[t].sqrt() * torch.randn_like(x)
    return x


model = Denoiser()
ema = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.99))
for it in range(300):
    angle = torch.rand(64, 1) * 2 * math.pi
    x0 = torch.cat([angle.cos(), angle.sin()], 1)
    t, noise = torch.randint(0, steps, (64,)), torch.randn(64, 2)
    scale = alpha_bar[t].unsqueeze(1)
    loss = nn.functional.mse_loss(model(scale.sqrt() * x0 + (1 - scale).sqrt() * noise, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, p in zip(ema.parameters(), model.parameters(), strict=True):
            slow.lerp_(p, 0.05)
    if it % 75 == 74:
        print(it, f"loss {loss.item():.3f} radius of samples {sample(ema, 128).norm(dim=1).mean().item():.3f}")
