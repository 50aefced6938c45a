# One step on one batch comes before the training, by a line of its own; the training then has windows of four.
# source: none (a common pattern, written small)
import torch
from torch import nn

torch.manual_seed(6)
net = nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


def loss_of(x):
    return nn.functional.mse_loss(net(x), x[:, :1])


loss_of(torch.randn(8, 4)).backward()
optimizer.step()
optimizer.zero_grad()
for index, x in enumerate(torch.randn(40, 8, 4)):
    (loss_of(x) / 4).backward()
    if index % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
