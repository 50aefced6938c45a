# A normalizing flow whose ActNorm layers are set from the first batch: that forward runs under no_grad in train mode
# and has no backward; from the second batch on, the same layers learn.
# source: rosinality/glow-pytorch train.py (if i == 0: with torch.no_grad(): ... continue)
import math

import torch
from torch import nn


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.loc, self.log_scale = nn.Parameter(torch.zeros(dim)), nn.Parameter(torch.zeros(dim))
        self.register_buffer("initialized", torch.tensor(False))

    def forward(self, x):
        if not self.initialized:
            with torch.no_grad():
                self.loc.copy_(-x.mean(0))
                self.log_scale.copy_(-x.std(0).log())
                self.initialized.fill_(True)
        return (x + self.loc) * self.log_scale.exp(), self.log_scale.sum().expand(len(x))


class Coupling(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim // 2, 24), nn.ReLU(), nn.Linear(24, dim))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        log_s, t = self.net(a).chunk(2, 1)
        log_s = log_s.tanh()
        return torch.cat([(b + t) * log_s.exp(), a], 1), log_s.sum(1)


torch.manual_seed(261)
flow = nn.ModuleList(layer for _ in range(4) for layer in (ActNorm(4), Coupling(4)))
optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)


def nll(x):
    logdet = torch.zeros(len(x))
    for layer in flow:
        x, more = layer(x)
        logdet = logdet + more
    return (0.5 * (x.square() + math.log(2 * math.pi)).sum(1) - logdet).mean()


for i in range(150):
    z = torch.randn(64, 4)
    data = torch.cat([z[:, :2] * 3 + 5, (z[:, :2] ** 2) + 0.1 * z[:, 2:]], 1)
    if i == 0:
        with torch.no_grad():
            print("before training", nll(data).item())
        continue
    loss = nll(data)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 30 == 0:
        print(i, loss.item())
