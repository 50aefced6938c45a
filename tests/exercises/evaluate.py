"""Answers to the exercise ``evaluate``: right ones, and one for each typical mistake."""

import torch
from torch.nn.functional import cross_entropy


def no_grad(model, batches):
    total = 0
    with torch.no_grad():
        for x, y in batches:
            total = total + cross_entropy(model(x), y)
    return total / len(batches)


@torch.inference_mode()
def inference(model, batches):
    model.eval()
    return sum(cross_entropy(model(x), y).item() for x, y in batches) / len(batches)


def grows(model, batches):
    losses = []
    for x, y in batches:
        losses.append(cross_entropy(model(x), y))
    return torch.stack(losses).mean()


def item(model, batches):
    total = 0
    for x, y in batches:
        total += cross_entropy(model(x), y).item()
    return total / len(batches)


def in_eval_mode(model, batches):
    model.eval()
    total = 0
    for x, y in batches:
        total = total + cross_entropy(model(x), y)
    return total / len(batches)


def switched_off(model, batches):
    torch.set_grad_enabled(False)
    return sum(cross_entropy(model(x), y) for x, y in batches) / len(batches)


def summed(model, batches):
    with torch.no_grad():
        return sum(cross_entropy(model(x), y) for x, y in batches)


def last(model, batches):
    with torch.no_grad():
        for x, y in batches:
            total = cross_entropy(model(x), y)
    return total


def last_share(model, batches):
    with torch.no_grad():
        for x, y in batches:
            total = cross_entropy(model(x), y)
    return total / len(batches)


RIGHT = (no_grad, inference)
WRONG = {
    "grows": grows,
    "one-batch": item,
    "eval-mode": in_eval_mode,
    "stays-off": switched_off,
    "sum": summed,
    "last": last,
    "last-share": last_share,
}
