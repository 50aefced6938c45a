# A regressor with a penalty on the gradient at its inputs; the gradient is taken without create_graph.
# source: none (a common mistake, written small)
# expect: loss-term-detached
import torch
from torch import nn


class Regressor:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, 1))
        self.optim = torch.optim.NAdam(self.model.parameters(), lr=2e-3)

    def smoothness(self, x):
        x = x.clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(self.model(x).sum(), x)  # <- cause
        return slope.norm(dim=1).sub(1).relu().square().mean()

    def fit(self, batches):
        for x in batches:
            self.optim.zero_grad()
            error = (self.model(x) - x.sin().sum(1, keepdim=True)).abs().mean()
            loss = error + 5.0 * self.smoothness(x)
            loss.backward()  # <- loss-term-detached
            self.optim.step()


torch.manual_seed(8)
Regressor().fit(torch.randn(30, 16, 3) * 2)
