# A neural ODE with the adjoint method written out: a custom Function solves forward without a graph, and its backward
# solves back in time with autograd.grad at each step; the parameters are its inputs, so .grad comes the usual way.
# source: rtqichen/torchdiffeq torchdiffeq/_impl/adjoint.py, examples/ode_demo.py
import torch
from torch import nn

N_STEPS, DT = 8, 0.05


class Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y, *params):
        with torch.no_grad():
            for _ in range(N_STEPS):
                y = y + DT * func(y + 0.5 * DT * func(y))
        ctx.func, ctx.params = func, params
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        total = [torch.zeros_like(p) for p in ctx.params]
        for _ in range(N_STEPS):
            with torch.enable_grad():
                before = (y - DT * ctx.func(y - 0.5 * DT * ctx.func(y))).detach().requires_grad_()
                step = DT * ctx.func(before + 0.5 * DT * ctx.func(before))
                pulled = torch.autograd.grad(step, (before, *ctx.params), grad)
            grad = grad + pulled[0]
            total = [t + g for t, g in zip(total, pulled[1:], strict=True)]
            y = before.detach()
        return None, grad, *total


torch.manual_seed(262)
func = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.RMSprop(func.parameters(), lr=2e-3)
a = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
for it in range(80):
    start = torch.randn(24, 2)
    truth = start @ torch.matrix_exp(a * N_STEPS * DT)
    loss = (Solve.apply(func, start, *func.parameters()) - truth).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 16 == 0:
        print(it, loss.item())
