"""The exercise ``memory_gradient``: sum over the uses."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from ..base import Exercise, Mistake


def _states(w: float, xs: list[float]) -> list[float]:
    """Return the memory before each step, and after the last: h = w * h + x, from 0."""
    states = [0.0]
    for x in xs:
        states.append(w * states[-1] + x)
    return states


def _by_hand(
    use: Callable[[float, int, int, list[float]], float], factor: float = 2.0
) -> Callable[[float, list[float], float], float]:
    """Return an answer that sums ``use(w, step, steps, states)`` over the steps."""

    def answer(w: float, xs: list[float], goal: float) -> float:
        states = _states(w, xs)
        return factor * (states[-1] - goal) * sum(use(w, t, len(xs), states) for t in range(len(xs)))

    return answer


class MemoryGradient(Exercise):
    """The chain rule for a shared weight, by hand."""

    name = "memory_gradient"
    notebook = "02_backward_adds"
    title = "Sum over the uses"
    level, minutes = "medium", 8
    spec = (
        "A memory starts at `h = 0` and does `h = w * h + x` for each `x` in `xs`; the loss is `(h - goal)**2` at the "
        "end: write `memory_gradient(w, xs, goal)`, its derivative with respect to `w`, without autograd."
    )
    stub = """
def memory_gradient(w, xs, goal):
    return None  # your answer
"""
    hints = (
        "w is used once a step. Each use has a slope of its own: the h that it was multiplied with.",
        "What a use does to its own step is passed on, times w, by every step after it.",
        "Keep all h in a list. Then walk backwards: start with `arriving = 2 * (h - goal)`; at each step add "
        "`arriving * (h before the step)`, then multiply `arriving` by w.",
    )
    mistakes = (
        Mistake(
            "writes",
            "Always zero: on the way back you write each use over the one before. The first step comes last, and its h "
            "is 0. Add.",
            lambda w, xs, goal: 0.0,
        ),
        Mistake(
            "last-use-only",
            "That is what the last step alone contributes. w is used in the earlier steps too.",
            _by_hand(lambda w, t, steps, h: h[t] if t == steps - 1 else 0.0),
        ),
        Mistake(
            "not-passed-on",
            "You add the uses, but each must still pass through the steps after it: times w for each of them.",
            _by_hand(lambda w, t, steps, h: h[t]),
        ),
        Mistake(
            "mean",
            "That is the mean over the steps. The chain rule adds; nothing is divided.",
            _by_hand(lambda w, t, steps, h: h[t] * w ** (steps - 1 - t) / steps),
        ),
        Mistake(
            "lost-two",
            "Half of it: the derivative of the square brings a 2.",
            _by_hand(lambda w, t, steps, h: h[t] * w ** (steps - 1 - t), factor=1.0),
        ),
    )

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a weight, three to five inputs and a goal that is missed."""
        w = dice.choice((-1, 1)) * dice.uniform(0.4, 1.4)
        xs = [round(dice.choice((-1, 1)) * dice.uniform(0.3, 2), 2) for _ in range(dice.randint(3, 5))]
        return round(w, 2), xs, round(_states(w, xs)[-1] + dice.choice((-1, 1)) * dice.uniform(0.5, 2), 2)

    def right(self, w: float, xs: list[float], goal: float) -> Any:
        """Let autograd do it."""
        weight = torch.tensor(w, dtype=torch.float64, requires_grad=True)
        h = torch.zeros((), dtype=torch.float64)
        for x in xs:
            h = weight * h + x
        return torch.autograd.grad((h - goal) ** 2, weight)[0].item()

    def told(self, *arguments: Any) -> str:
        """Give the whole case: it can be done on paper."""
        return f"w={arguments[0]}, xs={arguments[1]}, goal={arguments[2]}"
