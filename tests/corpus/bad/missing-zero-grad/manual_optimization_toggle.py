# Manual optimization in a Lightning style: the framework hands step() a closure that does nothing, and nobody clears.
# source: Lightning-AI/pytorch-lightning#5769
# expect: missing-zero-grad
import torch
from torch import nn


class ManualOptimizer:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, closure=None):
        return self.optimizer.step(closure=closure or (lambda: None))  # <- missing-zero-grad


torch.manual_seed(68)
model = nn.Linear(4, 1)
opt = ManualOptimizer(torch.optim.SGD(model.parameters(), lr=0.01))
for i in range(12):
    x = torch.randn(16, 4)  # <- cause
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()  # <- cause
    opt.step()  # <- cause
    print(i, loss.item())
