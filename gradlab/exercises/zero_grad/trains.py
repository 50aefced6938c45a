"""The exercise ``trains``: the rule behind 24 orders."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from ..base import Exercise, Mistake
from ..loops import weights

_STANDARD = ("zero", "forward", "backward", "step")


@cache
def _trains(order: tuple[str, ...]) -> bool:
    """Run a loop of four rounds in this order on a network of two layers, a loss given; see where its weights are."""

    def run(order: tuple[str, ...], rounds: int) -> Tensor:
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.linspace(-0.5, 0.7, parameter.numel()).view_as(parameter))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batches = iter(torch.linspace(-1, 1, 8 * 5 * 3).view(8, 5, 3))
        loss = model(next(batches)).square().mean() if order.index("backward") < order.index("forward") else None
        for _ in range(rounds):
            for word in order:
                if word == "zero":
                    optimizer.zero_grad()
                elif word == "forward":
                    loss = model(next(batches)).square().mean()
                elif word == "backward":
                    loss.backward()  # type: ignore[union-attr]
                else:
                    optimizer.step()
        return weights(model)

    try:
        mine = run(order, 4)
    except RuntimeError:
        return False
    return any(torch.allclose(mine, run(_STANDARD, rounds)) for rounds in (3, 4))


def _around(order: Any, start: str) -> tuple[str, ...]:
    """Return the order as it is met from one of its words on, going round."""
    at = list(order).index(start)
    return (*order[at:], *order[:at])


def _as_written(order: Any) -> bool:
    """Read the text once, from top to bottom."""
    zero, forward, backward, step = (list(order).index(word) for word in _STANDARD)
    return forward < backward < step and not backward < zero < step


def _not_cleared(order: Any) -> bool:
    """Ask only whether a gradient gets from backward to step."""
    turned = _around(order, "backward")
    return turned.index("step") < turned.index("zero")


class Trains(Exercise):
    """All 24 orders in one rule."""

    name = "trains"
    notebook = "04_zero_grad"
    title = "The rule behind 24 orders"
    level, minutes = "harder", 10
    spec = (
        'Write `trains(order)`: True if a loop with its lines in this order, such as `["zero", "forward", "backward", '
        '"step"]`, and with a loss to begin with where it needs one, trains a deep network as the standard loop does '
        "(it may be one update late), False if not."
    )
    stub = """
def trains(order):
    return None  # your answer
"""
    hints = (
        "A loop goes round. Turn the list until it begins with the word that you want to begin with: "
        "`order[at:] + order[:at]`.",
        "Begin with backward. What must come directly after it, if nothing is to be lost and nothing outdated?",
        "Two rings train: zero, forward, backward, step, and forward, zero, backward, step. Look at what they share.",
    )
    mistakes = (
        Mistake(
            "standard-only",
            "You allow the standard order only, but a loop may begin at any of its lines.",
            lambda order: tuple(order) == _STANDARD,
        ),
        Mistake(
            "one-ring",
            "You allow the standard order and its turns. zero may also stand between forward and backward.",
            lambda order: _around(order, "zero") == _STANDARD,
        ),
        Mistake(
            "as-written",
            "You read the text once, from top to bottom. A loop goes round: after its last line comes its first.",
            _as_written,
        ),
        Mistake(
            "zero-as-written",
            "You ask only whether zero stands between backward and step in the text. A loop goes round: on the way "
            "from backward to the step of the next round something may be cleared, too.",
            lambda order: not order.index("backward") < order.index("zero") < order.index("step"),
        ),
        Mistake(
            "forward-between",
            "You ask only that nothing is cleared between backward and step. A forward between them prepares a "
            "backward that finds changed weights.",
            _not_cleared,
        ),
        Mistake("all", "True for every order? Most of them do not train.", lambda order: True),
        Mistake("none", "False for every order? The standard order is among them.", lambda order: False),
    )
    rounds = 100

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return one of the 24 orders, now and then the standard one."""
        return (list(_STANDARD) if dice.random() < 0.1 else dice.sample(_STANDARD, 4),)

    def right(self, order: Any) -> Any:
        """Run it."""
        return _trains(tuple(order))

    def told(self, *arguments: Any) -> str:
        """Write the order."""
        return " > ".join(arguments[0])
