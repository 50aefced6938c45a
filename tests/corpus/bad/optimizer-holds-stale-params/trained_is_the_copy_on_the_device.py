# The net is copied for training, as if to another device, and the optimizer was made from the one that stays behind.
# source: none (a common mistake, written small)
# expect: optimizer-holds-stale-params
# cause: not found (the copy is made by a helper)
import copy

import torch
from torch import nn


def to_device(module):
    return copy.deepcopy(module).to("cpu")


torch.manual_seed(7)
autoencoder = nn.Sequential(nn.Linear(10, 3), nn.Sigmoid(), nn.Linear(3, 10))
optimizer = torch.optim.SGD(autoencoder.parameters(), lr=0.1, momentum=0.9)  # <- optimizer-holds-stale-params, cause
net = to_device(autoencoder)  # <- cause
mse = nn.MSELoss()


def step(batch):
    optimizer.zero_grad()
    loss = mse(net(batch), batch)
    loss.backward()
    optimizer.step()
    return loss.item()


history = [step(batch) for batch in torch.rand(30, 8, 10)]
print(history[0], history[-1])
