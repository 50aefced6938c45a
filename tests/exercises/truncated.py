"""Answers to the exercise ``truncated``: right ones, and one for each typical mistake."""

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


def whole(w, xs, ys, size):
    h, loss = torch.zeros(()), 0.0
    for x, y in zip(xs, ys, strict=True):
        h = torch.tanh(w * h + x)
        loss = loss + (h - y) ** 2
    loss.backward()
    return w.grad


def every_step(w, xs, ys, size):
    h = torch.zeros(())
    for start in range(0, len(xs), size):
        loss = 0.0
        for x, y in zip(xs[start : start + size], ys[start : start + size], strict=True):
            h = torch.tanh(w * h.detach() + x)
            loss = loss + (h - y) ** 2
        loss.backward()
    return w.grad


def from_zeros(w, xs, ys, size):
    for start in range(0, len(xs), size):
        h, loss = torch.zeros(()), 0.0
        for x, y in zip(xs[start : start + size], ys[start : start + size], strict=True):
            h = torch.tanh(w * h + x)
            loss = loss + (h - y) ** 2
        loss.backward()
    return w.grad


def clearing(w, xs, ys, size):
    h = torch.zeros(())
    for start in range(0, len(xs), size):
        w.grad = None
        h, loss = h.detach(), 0.0
        for x, y in zip(xs[start : start + size], ys[start : start + size], strict=True):
            h = torch.tanh(w * h + x)
            loss = loss + (h - y) ** 2
        loss.backward()
    return w.grad


def last_loss(w, xs, ys, size):
    h = torch.zeros(())
    for start in range(0, len(xs), size):
        h = h.detach()
        for x, y in zip(xs[start : start + size], ys[start : start + size], strict=True):
            h = torch.tanh(w * h + x)
            loss = (h - y) ** 2
        loss.backward()
    return w.grad


def full_chunks(w, xs, ys, size):
    h = torch.zeros(())
    for chunk in range(len(xs) // size):
        h, loss = h.detach(), 0.0
        for t in range(chunk * size, chunk * size + size):
            h = torch.tanh(w * h + xs[t])
            loss = loss + (h - ys[t]) ** 2
        loss.backward()
    return w.grad


def mean(w, xs, ys, size):
    return in_chunks(w, xs, ys, size) / len(range(0, len(xs), size))


RIGHT = (in_chunks, step_by_step)
WRONG = {
    "whole": whole,
    "every-step": every_step,
    "begins-again": from_zeros,
    "last-chunk-only": clearing,
    "last-step-only": last_loss,
    "short-dropped": full_chunks,
    "mean": mean,
}
