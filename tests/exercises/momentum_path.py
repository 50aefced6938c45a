"""Answers to the exercise ``momentum_path``: right ones, and one for each typical mistake."""

import torch


def two_lines(w, grads, lrs, beta):
    v, path = 0, []
    for g, lr in zip(grads, lrs, strict=True):
        v = beta * v + g
        w = w - lr * v
        path.append(w)
    return path


def with_torch(w, grads, lrs, beta):
    weight = torch.tensor(w)
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=beta)
    path = []
    for g, lr in zip(grads, lrs, strict=True):
        optimizer.param_groups[0]["lr"] = lr
        weight.grad = torch.tensor(g)
        optimizer.step()
        path.append(weight.item())
    return path


def as_tensor(w, grads, lrs, beta):
    v = torch.zeros(0)
    for i, g in enumerate(grads):
        v = torch.cat([v, torch.tensor([beta * (v[i - 1] if i else 0) + g])])
    return w - torch.cumsum(torch.tensor(lrs) * v, dim=0)


def lr_inside(w, grads, lrs, beta):
    v, path = 0, []
    for i in range(len(grads)):
        v = beta * v + lrs[i] * grads[i]
        w -= v
        path.append(w)
    return path


def averaged(w, grads, lrs, beta):
    v, path = 0, []
    for g, lr in zip(grads, lrs, strict=True):
        v = beta * v + (1 - beta) * g
        w -= lr * v
        path.append(w)
    return path


def plain(w, grads, lrs, beta):
    path = []
    for g, lr in zip(grads, lrs, strict=True):
        w -= lr * g
        path.append(w)
    return path


def nesterov(w, grads, lrs, beta):
    v, path = 0, []
    for g, lr in zip(grads, lrs, strict=True):
        v = beta * v + g
        w -= lr * (g + beta * v)
        path.append(w)
    return path


def uphill(w, grads, lrs, beta):
    v, path = 0, []
    for g, lr in zip(grads, lrs, strict=True):
        v = beta * v + g
        w += lr * v
        path.append(w)
    return path


RIGHT = (two_lines, with_torch, as_tensor)
WRONG = {
    "lr-inside": lr_inside,
    "averaged": averaged,
    "no-momentum": plain,
    "nesterov": nesterov,
    "uphill": uphill,
}
