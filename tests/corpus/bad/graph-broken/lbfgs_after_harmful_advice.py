# LBFGS with the forward pass outside of its closure, and a detach() to make the error about a freed graph go away.
# source: none (a public bug report, written small)
# expect: graph-broken
# raises: RuntimeError
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.rand(100, 10), torch.rand(100, 1)
model = nn.Linear(10, 1)
optimizer = torch.optim.LBFGS(model.parameters())
criterion = nn.MSELoss()
for _epoch in range(3):
    pred = model(x).detach()  # <- cause

    def closure():  # <- cause
        optimizer.zero_grad()
        loss = criterion(pred, y)  # noqa: B023
        loss.backward()  # <- graph-broken
        return loss

    optimizer.step(closure)
print(criterion(model(x), y).item())
