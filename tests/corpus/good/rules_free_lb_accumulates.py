# FreeLB: the gradients of all steps of the attack are collected for the weights, each divided by their number.
# source: https://arxiv.org/abs/1909.11764 (FreeLB)
import torch
from torch import nn

torch.manual_seed(11)
STEPS = 3
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(15):
    x = torch.randn(24, 6)
    y = (x[:, 0] > 0).long()
    optimizer.zero_grad()
    delta = torch.zeros_like(x).uniform_(-0.01, 0.01).requires_grad_()
    for _step in range(STEPS):
        loss = nn.functional.cross_entropy(model(x + delta), y) / STEPS
        loss.backward()
        delta = (delta + 0.05 * delta.grad.sign()).clamp(-0.1, 0.1).detach().requires_grad_()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
