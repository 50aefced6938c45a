"""Right answers to the exercise ``uncleared``."""

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


RIGHT = (by_id, by_trying)
