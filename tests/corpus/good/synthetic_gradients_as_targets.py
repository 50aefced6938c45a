# Decoupled neural interfaces: autograd.grad without create_graph gives a target for the module that predicts gradients,
# and a penalty on the input gradient is computed to be printed only.
# source: arxiv.org/abs/1608.05343, koz4k/dni-pytorch
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(222)
x = torch.randn(120, 6)
y = (x[:, :2].sum(1) > 0).long()
lower, upper = nn.Sequential(nn.Linear(6, 16), nn.ReLU()), nn.Linear(16, 2)
synthesizer = nn.Linear(16, 16)
optimizer = torch.optim.Adam([*lower.parameters(), *upper.parameters(), *synthesizer.parameters()], lr=5e-3)
for epoch in range(4):
    for batch, target in zip(x.split(20), y.split(20), strict=True):
        batch = batch.clone().requires_grad_()
        h = lower(batch)
        loss = F.cross_entropy(upper(h), target)
        grad = torch.autograd.grad(loss, h, retain_graph=True)[0]
        sensitivity = torch.autograd.grad(loss, batch, retain_graph=True)[0]
        penalty = 10 * (sensitivity.norm(2, dim=1) - 1).pow(2).mean()
        synthetic_loss = F.mse_loss(synthesizer(h.detach()), grad)
        total = loss + 100 * synthetic_loss
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    print(epoch, f"loss {loss.item():.4f} synthetic {synthetic_loss.item():.6f} penalty {penalty.item():.3f}")
