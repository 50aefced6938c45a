# A curve is fitted with LBFGS and its line search; the closure computes, goes back and returns, and clears nothing.
# source: none (a common mistake, written small)
# expect: missing-zero-grad
import torch
from torch import nn


class Gaussian(nn.Module):
    def __init__(self):
        super().__init__()
        self.height, self.centre = nn.Parameter(torch.tensor(1.0)), nn.Parameter(torch.tensor(0.5))
        self.log_width = nn.Parameter(torch.tensor(0.0))

    def forward(self, t):
        return self.height * torch.exp(-(((t - self.centre) / self.log_width.exp()) ** 2))


def fit(curve, t, measured, rounds=6):
    optimizer = torch.optim.LBFGS(curve.parameters(), lr=1, max_iter=12, line_search_fn="strong_wolfe")

    def evaluate():
        residual = curve(t) - measured  # <- cause
        error = residual.square().sum()  # <- cause
        error.backward()  # <- cause
        return error

    for _ in range(rounds):
        error = optimizer.step(evaluate)  # <- missing-zero-grad
    return error.item()


torch.manual_seed(0)
t = torch.linspace(-3, 3, 80)
measured = 2.5 * torch.exp(-(((t + 0.4) / 0.8) ** 2)) + 0.01 * torch.randn(80)
print(fit(Gaussian(), t, measured))
