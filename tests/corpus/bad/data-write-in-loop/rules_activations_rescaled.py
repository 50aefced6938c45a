# Activations are rescaled through .data between forward and backward: autograd does not see it, and tanh's gradient is
# computed from the wrong values.
# source: https://pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
# expect: data-write-in-loop
# severity: hint (the same is right where no backward pass needs the values)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
first, second = nn.Linear(8, 16), nn.Linear(16, 3)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
for epoch in range(3):
    for xb, yb in zip(x.split(16), y.split(16), strict=True):
        h = torch.tanh(first(xb))
        h.data.mul_(1 / h.data.norm(dim=1, keepdim=True))  # <- data-write-in-loop, cause
        loss = F.cross_entropy(second(h), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
