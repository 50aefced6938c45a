"""Right answers to the exercise ``mended_head``."""

import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR


def mended(body, head, loss_fn, batches, lr):
    model, total = nn.Sequential(body), 0.0
    model.append(head)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = ExponentialLR(optimizer, gamma=0.99)
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    return total / len(batches)


def detached(body, head, loss_fn, batches, lr):
    model, total = nn.Sequential(body, head), 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = ExponentialLR(optimizer, gamma=0.99)
    for x, y in batches:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        total += loss.detach()
    return total / len(batches)


RIGHT = (mended, detached)
