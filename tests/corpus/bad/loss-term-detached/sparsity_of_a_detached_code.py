# A sparse autoencoder whose penalty is computed on the code that was detached for the log.
# source: none (a common mistake, written small)
# expect: loss-term-detached
import torch
import torch.nn.functional as F
from torch import nn


class SparseAE(nn.Module):
    def __init__(self, dim=10, hidden=24):
        super().__init__()
        self.enc, self.dec = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        code = F.relu(self.enc(x))
        return self.dec(code), code.detach()  # <- cause


torch.manual_seed(0)
ae = SparseAE()
optimizer = torch.optim.AdamW(ae.parameters(), lr=1e-3)
l1_weight = 0.05
for epoch in range(3):
    active = 0.0
    for x in torch.rand(10, 16, 10):
        recon, code = ae(x)
        sparsity = code.abs().mean()  # <- cause
        loss = F.mse_loss(recon, x) + l1_weight * sparsity
        optimizer.zero_grad()
        loss.backward()  # <- loss-term-detached
        optimizer.step()
        active += (code > 0).float().mean().item()
    print(epoch, active / 10)
