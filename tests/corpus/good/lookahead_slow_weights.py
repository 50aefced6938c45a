# Lookahead as an optimizer around another: every fifth step the fast weights go back half of the way to the slow ones;
# the slow weights live in the wrapper and are in no optimizer.
# source: michaelrzhang/lookahead lookahead_pytorch.py
import torch
from torch import nn


class Lookahead:
    def __init__(self, optimizer, k=5, alpha=0.5):
        self.optimizer, self.k, self.alpha, self.count = optimizer, k, alpha, 0
        self.params = [p for group in optimizer.param_groups for p in group["params"]]
        self.slow = [p.detach().clone() for p in self.params]

    def zero_grad(self):
        self.optimizer.zero_grad()

    @torch.no_grad()
    def step(self):
        self.optimizer.step()
        self.count += 1
        if self.count % self.k == 0:
            for slow, p in zip(self.slow, self.params, strict=True):
                slow.lerp_(p, self.alpha)
                p.copy_(slow)


torch.manual_seed(234)
model = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 2))
optimizer = Lookahead(torch.optim.RAdam(model.parameters(), lr=1e-2))
x = torch.randn(240, 8)
y = x[:, :4].sum(1).gt(x[:, 4:].sum(1)).long()
for epoch in range(6):
    for rows in torch.randperm(240).split(24):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
