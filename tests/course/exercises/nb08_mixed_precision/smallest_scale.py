"""Right answers to the exercise ``smallest_scale``."""

import math


def by_trying(gradients):
    wanted = (gradients != 0).sum()
    for power in range(200):
        if ((gradients * 2**power).half() != 0).sum() == wanted:
            return 2**power
    return None


def by_the_limit(gradients):
    smallest = gradients[gradients != 0].abs().min().item()
    return 2 ** max(0, math.floor(math.log2(2**-25 / smallest)) + 1)  # above half of 2**-24, which rounds to 0


RIGHT = (by_trying, by_the_limit)
