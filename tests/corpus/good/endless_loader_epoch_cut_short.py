# An endless loader: epochs are a number of iterations, cut off by break, and an exhausted iterator is made anew.
# source: victoresque/pytorch-template#53 (inf_loop), amdegroot/ssd.pytorch#214
from itertools import repeat

import torch
from torch.utils import data as torch_data


def inf_loop(data_loader):
    for loader in repeat(data_loader):
        yield from loader


class Squares(torch_data.IterableDataset):
    def __iter__(self):
        for n in range(90):
            x = torch.tensor([n / 90.0])
            yield x, x**2


torch.manual_seed(87)
model = torch.nn.Sequential(torch.nn.Linear(1, 24), torch.nn.Tanh(), torch.nn.Linear(24, 1))
optimizer = torch.optim.Rprop(model.parameters(), lr=1e-3)
train_loader = torch_data.DataLoader(Squares(), batch_size=30)
batch_iterator = iter(train_loader)
len_epoch = 8

for epoch in range(3):
    for batch_idx, (data, target) in enumerate(inf_loop(train_loader)):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx + 1 == len_epoch:
            break
    print(epoch, loss.item())

for _ in range(10):
    try:
        data, target = next(batch_iterator)
    except StopIteration:
        batch_iterator = iter(train_loader)
        data, target = next(batch_iterator)
    loss = torch.nn.functional.mse_loss(model(data), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
