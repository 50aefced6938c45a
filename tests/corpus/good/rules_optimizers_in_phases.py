# Fine-tuning in phases: a new optimizer with a smaller learning rate for each, and a last one with L-BFGS.
# source: maziarraissi/PINNs (Adam, then L-BFGS)
import torch
from torch import nn

torch.manual_seed(15)
x = torch.randn(64, 4)
y = x.prod(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
for lr in (1e-2, 1e-3, 1e-4):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(10):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print(lr, loss.item())
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=10)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(3):
    print(optimizer.step(closure).item())
