# gpytorch: exact Gaussian-process regression with Adam, then LBFGS with a closure.
import hashlib

import gpytorch
import torch


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def main():
    torch.manual_seed(0)
    x = torch.linspace(0, 1, 30)
    y = torch.sin(6 * x) + 0.1 * torch.randn(30)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(x, y, likelihood)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        loss = -mll(model(x), y)
        loss.backward()
        optimizer.step()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = -mll(model(x), y)
        loss.backward()
        return loss

    for _ in range(5):
        loss = optimizer.step(closure)
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        print(f"loss {loss.item():.3f}, mean {likelihood(model(torch.rand(5))).mean.sum():.3f}")
    weights = b"".join(value.detach().numpy().tobytes() for value in model.parameters())
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
