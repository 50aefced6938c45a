# Continual learning: the network stays, but optimizer and schedule start afresh with each task, since the state of the
# old one is about other data; every task brings a head of its own.
# source: Qznan/SpanKL#5, pytorch/pytorch#37410
import torch
from torch import nn

torch.manual_seed(209)
trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
heads = nn.ModuleList()


def task_data(task):
    x = torch.randn(160, 8)
    return x, (x[:, task] > x[:, task + 1]).long()


for task in range(3):
    heads.append(nn.Linear(32, 2))
    optimizer = torch.optim.SGD([*trunk.parameters(), *heads[task].parameters()], lr=0.2, momentum=0.9)
    lr_schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.3)
    x, y = task_data(task)
    for epoch in range(6):
        for batch in torch.randperm(160).split(20):
            loss = nn.functional.cross_entropy(heads[task](trunk(x[batch])), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        lr_schedule.step()
        if epoch % 5 == 0:
            print(f"task {task} epoch {epoch} loss {loss.item():.4f} lr {lr_schedule.get_last_lr()[0]:.3f}")
