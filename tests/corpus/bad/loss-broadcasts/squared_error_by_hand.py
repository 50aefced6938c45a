# A power-plant regression with the mean squared error written by hand: (N, 1) minus (N,) is a table of N by N.
# source: pytorch/pytorch#4938
# expect: loss-broadcasts
import numpy as np
import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, n_in, n_hidden):
        super().__init__()
        self.hidden = nn.Linear(n_in, n_hidden)
        self.out = nn.Linear(n_hidden, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))  # <- cause


def mse(output, target):
    return ((output - target) ** 2).mean()  # <- loss-broadcasts


rng = np.random.default_rng(3)
torch.manual_seed(3)
table = rng.normal(size=(96, 5)).astype(np.float32)
table[:, 4] = table[:, 0] * 0.8 - table[:, 1] * 0.5 + 0.05 * table[:, 4]
features, energy = torch.from_numpy(table[:, :4]), torch.from_numpy(table[:, 4])  # <- cause
net = MLP(4, 16)
optimizer = torch.optim.RMSprop(net.parameters(), lr=5e-3)
for epoch in range(6):
    order = rng.permutation(96)
    for start in range(0, 96, 24):
        idx = torch.from_numpy(order[start : start + 24])
        loss = mse(net(features[idx]), energy[idx])  # <- cause
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} mse {loss.item():.4f}")
