"""Answers to the exercise ``uncleared``: right ones, and one for each typical mistake."""

import torch


def by_id(model, optimizer):
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return [name for name, p in model.named_parameters() if id(p) not in held]


def by_trying(model, optimizer):
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.zero_grad()
    return {name for name, p in model.named_parameters() if p.grad is not None}


def held(model, optimizer):
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return [name for name, p in model.named_parameters() if id(p) in held]


def one_group(model, optimizer):
    params = optimizer.param_groups[0]["params"]
    return [name for name, p in model.named_parameters() if not any(p is q for q in params)]


def by_value(model, optimizer):
    held = [p for group in optimizer.param_groups for p in group["params"]]
    return [name for name, p in model.named_parameters() if not any((p == q).all() for q in held if p.shape == q.shape)]


def only_looking(model, optimizer):
    optimizer.zero_grad()
    return [name for name, p in model.named_parameters() if p.grad is not None]


RIGHT = (by_id, by_trying)
WRONG = {
    "the-others": held,
    "first-group": one_group,
    "same-values": by_value,
    "frozen": lambda model, optimizer: [name for name, p in model.named_parameters() if not p.requires_grad],
    "nothing-there": only_looking,
}
