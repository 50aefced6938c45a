# Sharpness-aware minimization: backward, a step uphill by hand, backward again there, back, and the optimizer's step.
# source: none (a common pattern, written small)
import torch
from torch import nn


class SAM:
    def __init__(self, params, base, rho=0.05):
        self.params, self.base, self.rho, self.moved = list(params), base, rho, []

    @torch.no_grad()
    def uphill(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm() + 1e-12
        self.moved = [self.rho * p.grad / norm for p in self.params]
        for p, e in zip(self.params, self.moved, strict=True):
            p.add_(e)
        self.base.zero_grad()

    @torch.no_grad()
    def downhill(self):
        for p, e in zip(self.params, self.moved, strict=True):
            p.sub_(e)
        self.base.step()
        self.base.zero_grad()


torch.manual_seed(4)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
sam = SAM(net.parameters(), torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9))
for x in torch.randn(50, 16, 6):
    y = x[:, :3].argmax(1)
    nn.functional.cross_entropy(net(x), y).backward()
    sam.uphill()
    nn.functional.cross_entropy(net(x), y).backward()
    sam.downhill()
