# A GAN collects its losses in lists for the final plot, as tensors that still hang on their graphs.
# source: Lightning-AI/pytorch-lightning#8457
# expect: graph-retained-memory-leak
import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(1)
net_g = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
net_d = nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = optim.Adam(net_g.parameters(), lr=2e-3)
opt_d = optim.Adam(net_d.parameters(), lr=2e-3)
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
log = []

for step in range(16):
    real = torch.randn(16, 3) + 2
    fake = net_g(torch.randn(16, 4))

    net_d.zero_grad()
    err_real = F.binary_cross_entropy_with_logits(net_d(real), ones)
    err_fake = F.binary_cross_entropy_with_logits(net_d(fake.detach()), zeros)
    d_loss = err_real + err_fake
    d_loss.backward()
    opt_d.step()

    net_g.zero_grad()
    g_loss = F.binary_cross_entropy_with_logits(net_d(fake), ones)
    g_loss.backward()
    opt_g.step()
    log.append({"step": step, "d": d_loss.item(), "g": g_loss})  # <- graph-retained-memory-leak, cause

print("d loss", [round(row["d"], 2) for row in log[::5]])
print("g loss", [round(row["g"].item(), 2) for row in log[::5]])
