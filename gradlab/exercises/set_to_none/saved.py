"""The exercise ``saved``: will it help?."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from ..base import Exercise, Mistake


def _levels(activations: Sequence[int], gradients: Sequence[int]) -> list[int]:
    """Return the bytes alive after 0, 1, 2, ... layers of backward, the last layer first, with None."""
    trades = [gradient - activation for activation, gradient in zip(activations, gradients, strict=True)]
    return list(accumulate(reversed(trades), initial=sum(activations)))


def _saved(pick: Callable[[list[int]], list[int]]) -> Callable[..., int]:
    """Return an answer that looks for the peak among some of the levels only."""
    return lambda a, g: sum(a) + sum(g) - max(pick(_levels(a, g)))


class Saved(Exercise):
    """When None lowers the peak, and by how much."""

    name = "saved"
    notebook = "05_set_to_none"
    title = "Will it help?"
    level, minutes = "harder", 15
    spec = (
        "Write `saved(activations, gradients)`: by how many bytes `None` lowers the peak of an update, compared with "
        "zeros, if the peak is in forward or `backward()`; you get two lists, from the first layer to the last."
    )
    stub = """
def saved(activations, gradients):
    return None  # your answer
"""
    hints = (
        "With zeros the peak is where all activations are there. How many bytes is that?",
        "With `None`, write down what is alive after 0, 1, 2, ... layers of `backward()`, the last layer first: the "
        "activations of the layers still to come, and the gradients of those that are done.",
        "The peak with `None` is the largest of these. The answer is the difference of the two peaks.",
    )
    mistakes = (
        Mistake(
            "all-gradients",
            "Not always all of the gradients: at the peak some may have come.",
            lambda a, g: sum(g),
        ),
        Mistake("nothing", "It does help: at the peak some gradients are still to come.", lambda a, g: 0),
        Mistake(
            "two-ends",
            "You look at the two ends only: the peak may lie in between.",
            _saved(lambda levels: [levels[0], levels[-1]]),
        ),
        Mistake(
            "other-way",
            "You go from the first layer to the last: backward() goes the other way.",
            lambda a, g: sum(a) + sum(g) - max(_levels(a[::-1], g[::-1])),
        ),
        Mistake("peak-with-none", "That is the peak with None, not the difference.", lambda a, g: max(_levels(a, g))),
        Mistake("peak-with-zeros", "That is the peak with zeros, not the difference.", lambda a, g: sum(a) + sum(g)),
        Mistake("not-before", "The moment before backward() counts, too.", _saved(lambda levels: levels[1:])),
        Mistake("not-after", "The moment after the last layer counts, too.", _saved(lambda levels: levels[:-1])),
        Mistake(
            "each-by-itself",
            "That is each layer by itself, but the layers are alive together.",
            lambda a, g: sum(map(min, a, g)),
        ),
        Mistake("difference-of-sums", "That is the difference of the sums.", lambda a, g: sum(a) - sum(g)),
    )
    rounds = 32

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return the bytes of a few layers, activations and gradients, the peak before, after or in backward."""
        count, kind = dice.randint(4, 7), dice.choice(("before", "after", "between", "mixed", "mixed"))
        if kind == "between":  # the last layers take more than they give back, the first ones less
            low, high = (sorted(dice.randint(*ends) for _ in range(count)) for ends in ((1, 60), (60, 100)))
            last = dice.randint(1, count - 1)
            return high[last:] + low[:last], low[last:] + high[:last]
        ends = {"before": (80, 100, 1, 70), "after": (1, 30, 40, 100), "mixed": (1, 100, 1, 100)}[kind]
        return [dice.randint(*ends[:2]) for _ in range(count)], [dice.randint(*ends[2:]) for _ in range(count)]

    def right(self, activations: list[int], gradients: list[int]) -> Any:
        """Walk back through the layers, and note the most that is alive with each way to clear."""
        with_zeros = with_none = most = sum(activations)
        with_zeros += sum(gradients)
        for activation, gradient in zip(reversed(activations), reversed(gradients), strict=True):
            with_none += gradient - activation
            most = max(most, with_none)
        return with_zeros - most

    def told(self, *arguments: Any) -> str:
        """Write both lists."""
        return "saved({}, {})".format(*arguments)
