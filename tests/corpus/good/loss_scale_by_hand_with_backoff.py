# Dynamic loss scaling by hand: the loss is multiplied, the gradients are divided, an overflow leaves the step out,
# halves the scale and clears; without an overflow the scale doubles every ten steps.
# source: facebookresearch/metaseq#115 (dynamic loss scaler), arxiv.org/abs/1710.03740
import math

import torch
from torch import nn

torch.manual_seed(243)
model = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 6)).to(torch.bfloat16)
master = [p.detach().float().requires_grad_() for p in model.parameters()]
optimizer = torch.optim.Adam(master, lr=5e-3)
scale, good_steps, overflows = 2.0**126, 0, 0
for step in range(120):
    x = torch.randn(32, 6)
    output = model(x.bfloat16()).float()
    loss = nn.functional.mse_loss(output, x.roll(1, 1).tanh())
    (loss * scale).backward()
    gradients = [p.grad.float() / scale for p in model.parameters()]
    model.zero_grad()
    if all(torch.isfinite(g).all() for g in gradients):
        for p, g in zip(master, gradients, strict=True):
            p.grad = g
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for p, full in zip(model.parameters(), master, strict=True):
                p.copy_(full)
        good_steps += 1
        if good_steps % 10 == 0:
            scale *= 2
    else:
        overflows += 1
        scale /= 2
    if step % 24 == 0:
        print(f"step {step} loss {loss.item():.4f} scale 2^{math.log2(scale):.0f} overflows {overflows}")
