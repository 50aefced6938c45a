"""Answers to the exercise ``pull_back``: right ones, and one for each typical mistake."""
# ruff: noqa: N803 - a matrix is W

import torch


def by_hand(W, x, v):
    g = v * (1 - torch.tanh(W @ x) ** 2)
    return g[:, None] * x, W.T @ g


def by_loops(W, x, v):
    y = [sum(W[i, j] * x[j] for j in range(len(x))).tanh() for i in range(len(v))]
    g = [v[i] * (1 - y[i] ** 2) for i in range(len(v))]
    for_w = torch.tensor([[g[i] * x[j] for j in range(len(x))] for i in range(len(v))])
    return for_w, torch.tensor([sum(W[i, j] * g[i] for i in range(len(v))) for j in range(len(x))])


def from_g(g, W, x):
    return g[:, None] * x, W.T @ g


RIGHT = (by_hand, by_loops)
WRONG = {
    "no-slope": lambda W, x, v: from_g(v, W, x),
    "no-seed": lambda W, x, v: from_g(1 - torch.tanh(W @ x) ** 2, W, x),
    "not-squared": lambda W, x, v: from_g(v * (1 - torch.tanh(W @ x)), W, x),
    "not-transposed": lambda W, x, v: (by_hand(W, x, v)[0], W @ (v * (1 - torch.tanh(W @ x) ** 2))),
    "outer-turned": lambda W, x, v: (by_hand(W, x, v)[0].T, by_hand(W, x, v)[1]),
    "other-order": lambda W, x, v: (by_hand(W, x, v)[1], by_hand(W, x, v)[0]),
}
