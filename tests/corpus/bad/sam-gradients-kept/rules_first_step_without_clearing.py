# SAM written as two functions; the gradients of the climb are still in .grad when the second pass adds its own.
# source: https://github.com/rollovd/LookSAM/issues/3 (no zero_grad() before the second backward)
# expect: sam-gradients-kept
import torch
from torch import nn

torch.manual_seed(8)
RHO = 0.05
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


@torch.no_grad()
def climb():
    norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    steps = []
    for p in model.parameters():
        steps.append(p.grad * RHO / (norm + 1e-12))
        p.add_(steps[-1])
    return steps


@torch.no_grad()
def descend(steps):
    for p, step in zip(model.parameters(), steps, strict=True):
        p.sub_(step)
    optimizer.step()  # <- sam-gradients-kept
    optimizer.zero_grad()


for _ in range(20):
    x = torch.randn(24, 6)
    y = x[:, :3].argmax(1)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    steps = climb()
    nn.functional.cross_entropy(model(x), y).backward()  # <- cause
    descend(steps)
print(loss.item())
