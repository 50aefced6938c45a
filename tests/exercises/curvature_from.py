"""Answers to the exercise ``curvature_from``: the right one, and one for each typical mistake."""

import math

RIGHT = (lambda lr, loss_period: 2 * (1 - math.cos(math.pi / loss_period)) / lr,)
WRONG = {
    "times-lr": lambda lr, loss_period: 2 - 2 * math.cos(math.pi / loss_period),
    "no-arccos": lambda lr, loss_period: math.pi**2 / loss_period**2 / lr,
    "whole-period": lambda lr, loss_period: 2 * (1 - math.cos(math.tau / loss_period)) / lr,
    "lost-two": lambda lr, loss_period: (1 - math.cos(math.pi / loss_period)) / lr,
    "degrees": lambda lr, loss_period: 2 * (1 - math.cos(180 / loss_period)) / lr,
}
