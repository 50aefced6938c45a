"""Answers to the exercise ``gradient_of_each``: right ones, and one for each typical mistake."""

from itertools import pairwise

import torch


def by_difference(w, losses):
    found = []
    for loss in losses:
        before = torch.zeros_like(w) if w.grad is None else w.grad.clone()
        loss.backward()
        found.append(w.grad - before)
    return found


def sums_first(w, losses):
    sums = [torch.zeros_like(w)]
    for loss in losses:
        loss.backward()
        sums.append(w.grad.clone())
    return [after - before for before, after in pairwise(sums)]


def references(w, losses):
    history = []
    for loss in losses:
        loss.backward()
        history.append(w.grad)
    return history


def running(w, losses):
    history = []
    for loss in losses:
        loss.backward()
        history.append(w.grad.detach().clone())
    return history


def without_copy(w, losses):
    found = []
    losses[0].backward()
    found.append(w.grad.clone())
    for loss in losses[1:]:
        before = w.grad
        loss.backward()
        found.append(w.grad - before)
    return found


def clearing(w, losses):
    found = []
    for loss in losses:
        w.grad = None
        loss.backward()
        found.append(w.grad.clone())
    return found


def functional(w, losses):
    return [torch.autograd.grad(loss, w)[0] for loss in losses]


RIGHT = (by_difference, sums_first)
WRONG = {
    "one-tensor": references,
    "running-sums": running,
    "minus-itself": without_copy,
    "cleared": clearing,
    "nothing-in-grad": functional,
}
