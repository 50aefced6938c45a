"""Answers to the exercise ``smallest_scale``: right ones, and one for each typical mistake."""

import math

import torch


def by_trying(gradients):
    wanted = (gradients != 0).sum()
    for power in range(200):
        if ((gradients * 2**power).half() != 0).sum() == wanted:
            return 2**power
    return None


def by_the_limit(gradients):
    smallest = gradients[gradients != 0].abs().min().item()
    return 2 ** max(0, math.floor(math.log2(2**-25 / smallest)) + 1)  # above half of 2**-24, which rounds to 0


def to_the_smallest(gradients):
    smallest = gradients[gradients != 0].abs().min()
    scale = 1
    while smallest * scale < 2**-24:
        scale *= 2
    return scale


def to_tiny(gradients):
    smallest, scale = gradients[gradients != 0].abs().min(), 1
    while smallest * scale < torch.finfo(torch.float16).tiny:
        scale *= 2
    return scale


def without_power(gradients):
    return 2**-25 / gradients[gradients != 0].abs().min()


def positive(gradients):
    return by_trying(gradients[gradients > 0])


def largest(gradients):
    scale = 1
    while not (gradients * scale * 2).half().isinf().any():
        scale *= 2
    return scale


RIGHT = (by_trying, by_the_limit)
WRONG = {
    "no-rounding": to_the_smallest,
    "normal": to_tiny,
    "no-power": without_power,
    "signs": positive,
    "largest": largest,
}
