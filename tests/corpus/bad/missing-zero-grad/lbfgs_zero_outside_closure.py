# LBFGS calls its closure many times a step, and the gradients are cleared once before each step only.
# source: none (a public bug report, written small)
# expect: missing-zero-grad
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(100, 5)
y = x.sum(1, keepdim=True).tanh()
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=10)


def closure():
    loss = nn.functional.mse_loss(net(x), y)  # <- cause
    loss.backward()  # <- cause
    return loss


for _epoch in range(8):
    opt.zero_grad()  # <- cause
    opt.step(closure)  # <- missing-zero-grad
print(closure().item())
