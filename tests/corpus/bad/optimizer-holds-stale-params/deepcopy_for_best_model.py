# A run starts from a deep copy of the model, while the optimizer still points at the original's parameters.
# source: skorch-dev/skorch#317
# expect: optimizer-holds-stale-params
# cause: not found (a copied model registers nothing)
import copy

import torch
from torch import nn


class Net:
    def __init__(self, module, lr):
        self.module_ = module
        self.criterion_ = nn.MSELoss()
        self.optimizer_ = torch.optim.RMSprop(module.parameters(), lr=lr)  # <- optimizer-holds-stale-params

    def train_step(self, xi, yi):
        self.module_.train()
        self.module_.zero_grad(set_to_none=True)
        y_pred = self.module_(xi)
        loss = self.criterion_(y_pred, yi)
        loss.backward()
        self.optimizer_.step()
        return loss.item()

    def partial_fit(self, x, y, epochs=4, batch_size=16):
        for epoch in range(epochs):
            losses = []
            for xi, yi in zip(x.split(batch_size), y.split(batch_size), strict=True):
                losses.append(self.train_step(xi, yi))
            print(f"{epoch:>5} {sum(losses) / len(losses):.4f}")
        return self


torch.manual_seed(3)
x = torch.randn(64, 7)
y = (x**2).mean(1, keepdim=True)
net = Net(nn.Sequential(nn.Linear(7, 20), nn.ELU(), nn.Linear(20, 1)), lr=5e-3)
template = net.module_
net.module_ = copy.deepcopy(template)  # <- cause
net.partial_fit(x, y)
