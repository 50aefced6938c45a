# A hash code by a straight-through estimator: sign() forward, the identity backward, and a penalty on the rounding.
# source: none (a common pattern, written small)
import torch
from torch import nn


class HashNet(nn.Module):
    def __init__(self, bits=6):
        super().__init__()
        self.encode, self.decode = nn.Linear(10, bits), nn.Linear(bits, 10)

    def forward(self, x):
        soft = torch.tanh(self.encode(x))
        hard = soft + (soft.sign() - soft).detach()
        return self.decode(hard), soft


torch.manual_seed(2)
net = HashNet()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
for x in torch.randn(60, 16, 10):
    restored, soft = net(x)
    rounding = (soft - soft.sign().detach()).square().mean()
    loss = (restored - x).square().mean() + 0.1 * rounding
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
