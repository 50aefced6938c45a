# `.data` is written to before training (a start from given weights), read inside the loop, and a gradient is scaled
# through it.
# source: https://pytorch.org/docs/stable/nn.init.html
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
model = nn.Linear(8, 3)
model.weight.data.normal_(0, 0.02)
model.bias.data = torch.zeros(3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
norms = []
for _ in range(3):
    for xb, yb in zip(x.split(16), y.split(16), strict=True):
        optimizer.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        model.bias.grad.data.mul_(0.5)
        optimizer.step()
        norms.append(model.weight.data.norm().item())
model.weight.data.clamp_(-1, 1)
print(norms[-1])
