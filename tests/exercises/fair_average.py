"""Answers to the exercise ``fair_average``: right ones, and one for each typical mistake."""

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


def summed(model, samples, all_reduce):
    for p in model.parameters():
        all_reduce(p.grad)
        p.grad = p.grad * 1


def halved(model, samples, all_reduce):
    for p in model.parameters():
        all_reduce(p.grad)
        p.grad /= 2


def by_all(model, samples, all_reduce):
    total = torch.tensor(float(samples))
    all_reduce(total)
    for p in model.parameters():
        all_reduce(p.grad)
        p.grad /= total


def by_mine(model, samples, all_reduce):
    for p in model.parameters():
        p.grad *= samples
        all_reduce(p.grad)
        p.grad /= samples


def weighted_sum(model, samples, all_reduce):
    for p in model.parameters():
        p.grad *= samples
        all_reduce(p.grad)


def of_a_copy(model, samples, all_reduce):
    for p in model.parameters():
        gradient = p.grad.clone()
        all_reduce(gradient)
        gradient /= 2


RIGHT = (before, after, in_one_message)
WRONG = {
    "sum": summed,
    "mean-of-means": halved,
    "unweighted": by_all,
    "own-count": by_mine,
    "not-divided": weighted_sum,
    "nothing": of_a_copy,
}
