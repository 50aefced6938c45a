"""The exercise ``trains``."""

from __future__ import annotations

import random
from functools import cache

import torch
from torch import Tensor, nn

from ..definition import Case, Definition
from ..loops import all_weights

STANDARD = ("zero", "forward", "backward", "step")


def case(rng: random.Random) -> Case:
    order = list(STANDARD) if rng.random() < 0.1 else rng.sample(STANDARD, 4)
    return Case(order, text=" > ".join(order))


@cache
def as_standard(order: tuple[str, ...]) -> bool:
    """Whether four rounds in this order end at the weights of the standard loop after three or four."""
    try:
        return any(torch.allclose(after(order, 4), after(STANDARD, rounds)) for rounds in (3, 4))
    except RuntimeError:
        return False


def after(order: tuple[str, ...], rounds: int) -> Tensor:
    """Return the weights after a loop in this order; a forward comes before it where backward would find no loss."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.linspace(-0.5, 0.7, parameter.numel()).view_as(parameter))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = iter(torch.linspace(-1, 1, 8 * 5 * 3).view(8, 5, 3))
    before = () if follow(order, "forward", "backward") else ("forward",)
    for line in before + order * rounds:
        if line == "zero":
            optimizer.zero_grad()
        elif line == "forward":
            loss = model(next(batches)).square().mean()
        elif line == "backward":
            loss.backward()
        else:
            optimizer.step()
    return all_weights(model)


def follow(order: list[str] | tuple[str, ...], *lines: str) -> bool:
    """Whether these lines come one after the other, others between them or not."""
    return [line for line in order if line in lines] == list(lines)


def turned(order: list[str], start: str) -> list[str]:
    """Return the order rotated so that it begins with this line."""
    at = order.index(start)
    return order[at:] + order[:at]


DEFINITION = Definition(
    case=case,
    reference=lambda order: as_standard(tuple(order)),
    mistakes={
        "standard-only": lambda order: order == list(STANDARD),
        "one-ring": lambda order: turned(order, "zero") == list(STANDARD),
        "as-written": lambda order: (
            follow(order, "forward", "backward", "step") and not follow(order, "backward", "zero", "step")
        ),
        "zero-as-written": lambda order: not follow(order, "backward", "zero", "step"),
        "forward-between": lambda order: follow(turned(order, "backward"), "step", "zero"),
        "all": lambda order: True,
        "none": lambda order: False,
    },
    rounds=100,
)
