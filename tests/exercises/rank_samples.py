"""Answers to the exercise ``rank_samples``: right ones, and one for each typical mistake."""

import math


def dealt(samples, size, rank):
    numbers = list(range(samples))
    while len(numbers) % size:
        numbers.append(numbers[len(numbers) - samples])
    return numbers[rank::size]


def counted(samples, size, rank):
    return [(rank + turn * size) % samples for turn in range(math.ceil(samples / size))]


def in_blocks(samples, size, rank):
    each = math.ceil(samples / size)
    numbers = [*range(samples), *range(size)]
    return numbers[rank * each : (rank + 1) * each]


def dropped(samples, size, rank):
    return [rank + turn * size for turn in range(samples // size)]


RIGHT = (dealt, counted)
WRONG = {
    "unequal": lambda samples, size, rank: [i for i in range(samples) if i % size == rank],
    "dropped": dropped,
    "blocks": in_blocks,
    "everything": lambda samples, size, rank: [*range(samples)],
}
