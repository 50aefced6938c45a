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


RIGHT = {"rank_samples": [dealt], "all_reduces": [by_windows], "fair_average": [after]}
