# A stochastic line search: one backward a step, then the loss is evaluated at shrinking step sizes under no_grad, with
# the weights moved in place, until it has fallen enough. There is no optimizer.
# source: IssamLaradji/sls sls/sls.py, IssamLaradji/sls#8
import torch
from torch import nn

torch.manual_seed(277)
model = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 1))
params = list(model.parameters())
x = torch.randn(256, 5)
y = (x[:, :1] - x[:, 1:2]).sin()
step_size, trials = 1.0, 0
for epoch in range(8):
    for rows in torch.randperm(256).split(64):
        model.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        before = [p.detach().clone() for p in params]
        slope = sum(p.grad.square().sum() for p in params)
        step_size = min(step_size * 1.8, 10.0)
        with torch.no_grad():
            while step_size > 1e-6:
                for p, b in zip(params, before, strict=True):
                    p.copy_(b - step_size * p.grad)
                trials += 1
                if nn.functional.mse_loss(model(x[rows]), y[rows]) <= loss - 0.1 * step_size * slope:
                    break
                step_size *= 0.7
    print(f"epoch {epoch} loss {loss.item():.4f} step size {step_size:.3f} trials {trials}")
