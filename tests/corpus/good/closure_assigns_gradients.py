# The closure runs no backward(): it asks torch.autograd.grad for the gradients and puts them into .grad itself.
# source: https://pytorch.org/docs/stable/optim.html#optimizer-step-closure, with torch.autograd.grad
import torch
from torch import nn

torch.manual_seed(67)
model = nn.Linear(4, 1)
params = list(model.parameters())
optimizer = torch.optim.SGD(params, lr=0.05)
for i in range(10):
    x = torch.randn(16, 4)

    def closure(x=x):
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        for p, grad in zip(params, torch.autograd.grad(loss, params), strict=True):
            p.grad = grad
        return loss

    print(i, optimizer.step(closure).item())
