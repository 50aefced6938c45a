# Two optimizers for two heads, each given the shared encoder as well: it is stepped twice by rules of their own.
# source: eriklindernoren/PyTorch-GAN implementations/infogan/infogan.py (the same, meant so)
# expect: params-in-two-optimizers
# severity: hint (InfoGAN does the same on purpose)
import torch
from torch import nn

torch.manual_seed(14)
encoder = nn.Sequential(nn.Linear(6, 12), nn.ReLU())
digit, sign = nn.Linear(12, 3), nn.Linear(12, 2)
opt_digit = torch.optim.Adam([*encoder.parameters(), *digit.parameters()], lr=1e-2)
opt_sign = torch.optim.Adam([*encoder.parameters(), *sign.parameters()], lr=1e-2)  # <- params-in-two-optimizers, cause
for _ in range(20):
    x = torch.randn(16, 6)
    opt_digit.zero_grad()
    loss = nn.functional.cross_entropy(digit(encoder(x)), x[:, :3].argmax(1))
    loss.backward()
    opt_digit.step()
    opt_sign.zero_grad()
    loss = nn.functional.cross_entropy(sign(encoder(x)), (x[:, 3] > 0).long())
    loss.backward()
    opt_sign.step()
print(loss.item())
