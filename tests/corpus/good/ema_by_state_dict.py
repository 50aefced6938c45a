# A moving average of the weights is kept by state_dict() and copy_(), with its buffers, and evaluated each epoch.
# source: none (a common pattern, written small)
import copy

import torch
from torch import nn


class Ema:
    def __init__(self, model, decay=0.9):
        self.model, self.decay = copy.deepcopy(model).eval().requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        mine, theirs = self.model.state_dict(), model.state_dict()
        for name, value in mine.items():
            if value.is_floating_point():
                value.mul_(self.decay).add_(theirs[name], alpha=1 - self.decay)
            else:
                value.copy_(theirs[name])
        self.model.load_state_dict(mine)


torch.manual_seed(10)
net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 1))
ema = Ema(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(4):
    net.train()
    for x in torch.randn(12, 16, 4):
        loss = nn.functional.mse_loss(net(x), x.norm(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(net)
    with torch.no_grad():
        x = torch.randn(64, 4)
        print(epoch, nn.functional.mse_loss(ema.model(x), x.norm(dim=1, keepdim=True)).item())
