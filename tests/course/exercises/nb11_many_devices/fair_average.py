"""Right answers to the exercise ``fair_average``."""

import torch


def before(model, samples, all_reduce):
    total = torch.tensor(float(samples))
    all_reduce(total)
    for p in model.parameters():
        p.grad *= samples / total
        all_reduce(p.grad)


def after(model, samples, all_reduce):
    for p in model.parameters():
        p.grad *= samples
        all_reduce(p.grad)
    total = torch.tensor([samples])
    all_reduce(total)
    for p in model.parameters():
        p.grad /= total


def in_one_message(model, samples, all_reduce):
    parts = [p.grad.flatten() * samples for p in model.parameters()]
    message = torch.cat([*parts, torch.tensor([float(samples)])])
    all_reduce(message)
    at = 0
    for p in model.parameters():
        p.grad = (message[at : at + p.numel()] / message[-1]).view_as(p)
        at += p.numel()


RIGHT = (before, after, in_one_message)
