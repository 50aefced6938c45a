# A kernel machine fitted by Adam and then by LBFGS. In the second phase the module keeps its last nine kernel matrices,
# each with its graph: the number of old graphs rises for some batches and then stays.
# source: gpytorch's exact regression, whose operators keep what they have computed
from collections import deque

import torch
from torch import nn


class Kernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.noise = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))
        self.recent = deque(maxlen=9)

    def forward(self, x):
        matrix = torch.exp(-((x[:, None] - x) ** 2) / self.scale.exp()) + self.noise.exp() * torch.eye(len(x))
        self.recent.append(matrix)
        return matrix


torch.manual_seed(0)
x = torch.linspace(0, 1, 20)
y = torch.sin(6 * x) + 0.1 * torch.randn(20)
kernel = Kernel()


def loss_fn(matrix):
    return y @ torch.linalg.solve(matrix, y) + torch.logdet(matrix)


optimizer = torch.optim.Adam(kernel.parameters(), lr=0.05)
for _ in range(20):
    optimizer.zero_grad()
    loss_fn(kernel(x)).backward()
    optimizer.step()
    kernel.recent.clear()

optimizer = torch.optim.LBFGS(kernel.parameters(), lr=0.1, max_iter=4)


def closure():
    optimizer.zero_grad()
    loss = loss_fn(kernel(x))
    loss.backward()
    return loss


for _ in range(6):
    optimizer.step(closure)
