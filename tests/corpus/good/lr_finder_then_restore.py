# A learning-rate range test: the rate grows until the loss blows up, the loop breaks off, and model and optimizer are
# restored from memory before the real training.
# source: davidtvs/pytorch-lr-finder torch_lr_finder/lr_finder.py
import copy

import torch
from torch import nn, optim
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(102)
model = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = optim.SGD(model.parameters(), lr=1e-4)
criterion = nn.HuberLoss()


def batches():
    while True:
        x = torch.randn(40, 9)
        yield x, x.mean(1, keepdim=True) * 3


def range_test(iterator, end_lr=50.0, num_iter=60, diverge_th=4):
    memory = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    schedule = LambdaLR(optimizer, lambda i: (end_lr / 1e-4) ** (i / (num_iter - 1)))
    history, best = [], None
    for iteration in range(num_iter):
        optimizer.zero_grad()
        x, y = next(iterator)
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        history.append((schedule.get_last_lr()[0], loss.item()))
        schedule.step()
        best = loss.item() if best is None else min(best, loss.item())
        if iteration > 10 and loss.item() > diverge_th * best:
            break
    model.load_state_dict(memory[0])
    optimizer.load_state_dict(memory[1])
    return min(history, key=lambda pair: pair[1])[0] / 5


data = batches()
suggested = range_test(data)
for group in optimizer.param_groups:
    group["lr"] = suggested
for step in range(40):
    x, y = next(data)
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 13 == 0:
        print(step, f"lr {suggested:.4f} loss {loss.item():.5f}")
