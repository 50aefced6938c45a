# pyro: stochastic variational inference, whose optimizers are made one for each parameter while it runs.
import hashlib

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal
from pyro.nn import PyroModule, PyroSample
from pyro.optim import ClippedAdam
from torch import nn


class Regression(PyroModule):
    def __init__(self):
        super().__init__()
        self.linear = PyroModule[nn.Linear](3, 1)
        self.linear.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 3]).to_event(2))

    def forward(self, x, y=None):
        mean = self.linear(x).squeeze(-1)
        with pyro.plate("data", len(x)):
            return pyro.sample("obs", dist.Normal(mean, 0.1), obs=y)


def main():
    pyro.set_rng_seed(0)
    x = torch.randn(64, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5])
    model = Regression()
    guide = AutoDiagonalNormal(model)
    svi = SVI(model, guide, ClippedAdam({"lr": 0.02}), Trace_ELBO())
    for step in range(120):
        loss = svi.step(x, y)
        if step % 40 == 0:
            print(f"{step}: {loss:.1f}")
    weights = b"".join(value.detach().numpy().tobytes() for _, value in sorted(pyro.get_param_store().items()))
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
