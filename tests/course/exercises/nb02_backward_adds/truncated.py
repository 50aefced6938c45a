"""Right answers to the exercise ``truncated``."""

import torch


def in_chunks(w, xs, ys, size):
    h = torch.zeros(())
    for start in range(0, len(xs), size):
        h = h.detach()
        loss = 0.0
        for x, y in zip(xs[start : start + size], ys[start : start + size], strict=True):
            h = torch.tanh(w * h + x)
            loss = loss + (h - y) ** 2
        loss.backward()
    return w.grad


def step_by_step(w, xs, ys, size):
    h, loss = torch.zeros(()), 0.0
    for t in range(len(xs)):
        if t and t % size == 0:
            loss.backward()
            h, loss = h.detach(), 0.0
        h = torch.tanh(w * h + xs[t])
        loss = loss + (h - ys[t]) ** 2
    loss.backward()
    return w.grad.clone()


RIGHT = (in_chunks, step_by_step)
