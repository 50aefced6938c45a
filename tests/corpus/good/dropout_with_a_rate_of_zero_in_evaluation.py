# A net chooses the rate of F.dropout by its mode, and it is 0 in evaluation, where nothing is dropped.
# source: none (a common pattern, written small)
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.b(F.dropout(self.a(x).relu(), 0.3 if self.training else 0.0))


torch.manual_seed(5)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(3):
    net.train()
    for x in torch.randn(10, 8, 4):
        optimizer.zero_grad()
        F.mse_loss(net(x), x[:, :1]).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(epoch, net(torch.randn(9, 4)).std().item())
