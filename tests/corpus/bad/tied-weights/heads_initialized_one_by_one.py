# Two heads of a network share their weight, until a function that initializes gives each of them a fresh one.
# source: none (a common mistake, written small)
# expect: tied-weights
# severity: hint (two weights may be wanted)
import torch
from torch import nn


class Siamese(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.left, self.right = nn.Linear(dim, 6), nn.Linear(dim, 6)
        self.right.weight = self.left.weight

    def forward(self, a, b):
        return (self.left(a) - self.right(b)).pow(2).sum(1)


def init_weights(module):
    if isinstance(module, nn.Linear):
        fresh = torch.empty(module.weight.shape)
        nn.init.xavier_uniform_(fresh)
        module.weight = nn.Parameter(fresh)  # <- tied-weights, cause


torch.manual_seed(3)
net = Siamese(5)
net.apply(init_weights)  # <- cause
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
for a in torch.randn(25, 12, 5):
    same = torch.rand(12) > 0.5
    b = torch.where(same.unsqueeze(1), a + 0.1 * torch.randn_like(a), torch.randn_like(a))
    distance = net(a, b)
    loss = torch.where(same, distance, torch.relu(1 - distance)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
