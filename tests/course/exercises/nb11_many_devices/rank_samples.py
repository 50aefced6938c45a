"""Right answers to the exercise ``rank_samples``."""

import math


def dealt(samples, size, rank):
    numbers = list(range(samples))
    while len(numbers) % size:
        numbers.append(numbers[len(numbers) - samples])
    return numbers[rank::size]


def counted(samples, size, rank):
    return [(rank + turn * size) % samples for turn in range(math.ceil(samples / size))]


RIGHT = (dealt, counted)
