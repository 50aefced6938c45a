# The fake images go into D's loss undetached: its backward frees the generator's graph, which G's own loss needs.
# source: pytorch/examples#116
# expect: backward-twice
# cause: not found (the value that came from the earlier pass has no line of its own)
# raises: RuntimeError
import torch
from torch import nn


def backward_and_step(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()  # <- backward-twice
    optimizer.step()


torch.manual_seed(74)
net_g = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
net_d = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizer_d, optimizer_g = torch.optim.Adam(net_d.parameters()), torch.optim.Adam(net_g.parameters())
criterion = nn.BCEWithLogitsLoss()
for i in range(8):
    fake = net_g(torch.randn(16, 4))
    guess = torch.cat([net_d(torch.randn(16, 2) + 2), net_d(fake)])  # <- cause
    err_d = criterion(guess, torch.cat([torch.ones(16, 1), torch.zeros(16, 1)]))
    backward_and_step(err_d, optimizer_d)
    err_g = criterion(net_d(fake), torch.ones(16, 1))
    backward_and_step(err_g, optimizer_g)
    print(i, err_d.item())
