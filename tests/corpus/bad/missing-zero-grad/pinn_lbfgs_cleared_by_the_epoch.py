# A small physics-informed net: train() clears before it hands LBFGS its closure, which is called many times a step.
# source: none (a common mistake, written small)
# expect: missing-zero-grad
import torch
from torch import nn


class Pinn:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
        self.opt = torch.optim.LBFGS(self.net.parameters(), lr=0.1, max_iter=8)
        self.calls = 0

    def residual(self):
        t = torch.linspace(0, 1, 20).reshape(-1, 1).requires_grad_(True)
        u = self.net(t)
        (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)
        return (du + u).square().mean() + (u[0] - 1).square().sum()

    def closure(self):
        self.calls += 1  # <- cause
        loss = self.residual()  # <- cause
        loss.backward()  # <- cause
        return loss

    def train(self, epochs):
        for _ in range(epochs):
            self.net.zero_grad()  # <- cause
            self.opt.step(self.closure)  # <- missing-zero-grad


torch.manual_seed(2)
pinn = Pinn()
pinn.train(6)
print(pinn.calls)
