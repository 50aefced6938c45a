# A residual MLP whose blocks, each an nn.Sequential, are filled into a plain list: only stem and head are trained.
# source: lucidrains/mlp-mixer-pytorch, with the mistake put in
# expect: params-missing-from-optimizer
import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self, dim=12, depth=3):
        super().__init__()
        self.stem = nn.Linear(5, dim)
        self.blocks = [  # <- cause
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
            for _ in range(depth)
        ]
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


torch.manual_seed(2)
net = Mixer()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)  # <- params-missing-from-optimizer
x = torch.randn(64, 5)
y = (x[:, 0] > 0).long()
for epoch in range(4):
    for xb, yb in zip(x.split(16), y.split(16), strict=True):
        loss = nn.functional.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
