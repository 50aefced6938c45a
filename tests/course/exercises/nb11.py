"""Right answers to the exercises of notebook 11, written another way than the solutions."""

import torch


def dealt(samples, size, rank):
    numbers = list(range(samples))
    while len(numbers) % size:
        numbers.append(numbers[len(numbers) - samples])
    return numbers[rank::size]


def by_windows(batches, accumulate, buckets, no_sync):
    if not no_sync:
        return buckets * batches
    return buckets * len(range(0, batches, accumulate))


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


RIGHT = {"rank_samples": [dealt], "all_reduces": [by_windows], "fair_average": [after, in_one_message]}
