# A deep equilibrium layer: the fixed point is found under no_grad, one more application attaches the graph, and a hook
# on its output solves the linear system of the implicit gradient by iterating autograd.grad.
# source: locuslab/deq DEQ-Sequence/models/deq_transformer.py
import torch
from torch import nn


class DEQ(nn.Module):
    def __init__(self, width, iterations=15):
        super().__init__()
        self.inp, self.rec, self.iterations = nn.Linear(5, width), nn.Linear(width, width, bias=False), iterations
        nn.init.normal_(self.rec.weight, std=0.4 / width**0.5)

    def f(self, z, x):
        return torch.tanh(self.rec(z) + self.inp(x))

    def forward(self, x):
        with torch.no_grad():
            z = torch.zeros(len(x), self.rec.in_features)
            for _ in range(self.iterations):
                z = self.f(z, x)
        z = self.f(z, x)
        if self.training:
            z0 = z.detach().requires_grad_()
            f0 = self.f(z0, x)

            def implicit(grad):
                solution = grad
                for _ in range(self.iterations):
                    solution = torch.autograd.grad(f0, z0, solution, retain_graph=True)[0] + grad
                return solution

            z.register_hook(implicit)
        return z


torch.manual_seed(270)
model = nn.Sequential(DEQ(24), nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(192, 5)
y = (x @ torch.randn(5, 3)).argmax(1)
for epoch in range(5):
    for rows in torch.randperm(192).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
