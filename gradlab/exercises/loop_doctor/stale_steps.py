"""The exercise ``stale_steps``: be the doctor."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import torch

from ..base import Exercise, Mistake


def _steps(history: Sequence[str], *, clears: bool = True) -> list[tuple[int, int, bool, bool]]:
    """Return for each step its number, its place, and whether something used and something new is in ``.grad``."""
    used: list[bool] = []
    found: list[tuple[int, int, bool, bool]] = []
    for place, call in enumerate(history):
        if call == "zero" and clears:
            used = []
        elif call == "backward":
            used.append(False)
        elif call == "step":
            found.append((len(found) + 1, place, True in used, False in used))
            used = [True] * len(used)
    return found


def _windows(history: Sequence[str]) -> list[int]:
    """Return the steps with more than one backward since the last clearing."""
    found, passes, number = [], 0, 0
    for call in history:
        passes = 0 if call == "zero" else passes + (call == "backward")
        number += call == "step"
        found += [number] * (call == "step" and passes > 1)
    return found


def _any_step_since(history: Sequence[str]) -> list[int]:
    """Return the steps that come after another one without clearing between, whatever is in ``.grad``."""
    found, since, number = [], False, 0
    for call in history:
        if call == "step":
            number += 1
            found += [number] * since
        since = (since or call == "step") and call != "zero"
    return found


class StaleSteps(Exercise):
    """The heart of the doctor's book."""

    name = "stale_steps"
    notebook = "10_loop_doctor"
    title = "Be the doctor"
    level, minutes = "easy", 8
    spec = (
        "Write `stale_steps(history)`: given the calls of a loop, a list of `'zero'`, `'backward'` and `'step'`, "
        "return the numbers of those steps (the first is 1) that applied a gradient which an earlier one had applied."
    )
    stub = """
def stale_steps(history):
    return None  # your answer
"""
    hints = (
        "Go through the calls and keep a list of what is in `.grad`. For each gradient in it you need to know one "
        "thing only: has a step used it?",
        "`backward`: append `False`. `zero`: empty the list. `step`: is there a `True` in the list? After it, all are "
        "`True`.",
    )
    mistakes = (
        Mistake("windows", "Two backward() before the first step() are an accumulation window, no mistake.", _windows),
        Mistake(
            "never-clears",
            "zero_grad() takes the old gradients away: start again with an empty list.",
            lambda history: [number for number, _, old, _ in _steps(history, clears=False) if old],
        ),
        Mistake(
            "from-zero",
            "The first step is number 1, not 0.",
            lambda history: [number - 1 for number, _, old, _ in _steps(history) if old],
        ),
        Mistake(
            "places",
            "Those are places in the history, not numbers of steps.",
            lambda history: [place for _, place, old, _ in _steps(history) if old],
        ),
        Mistake(
            "the-others",
            "Those are the steps that are right. The others are wanted.",
            lambda history: [number for number, _, old, _ in _steps(history) if not old],
        ),
        Mistake(
            "new-ones-only",
            "A step() after a step(), with no backward() between, applies the old gradient again, too.",
            lambda history: [number for number, _, old, new in _steps(history) if old and new],
        ),
        Mistake(
            "empty",
            "Is there any gradient at all? A step on an empty .grad applies nothing.",
            _any_step_since,
        ),
    )
    rounds = 60

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return 4 to 16 calls in any order."""
        calls = ("zero", "backward", "backward", "step", "step")
        return (dice.choices(calls, k=dice.randint(4, 16)),)

    def right(self, history: list[str]) -> Any:
        """Let PyTorch say it: backward number k adds the bit 2**k to .grad."""
        weight, used, number, found = torch.zeros((), dtype=torch.float64, requires_grad=True), 0, 0, []
        for k, call in enumerate(history):
            if call == "zero":
                weight.grad = None
            elif call == "backward":
                (weight * 2**k).backward()
            else:
                number += 1
                inside = 0 if weight.grad is None else int(weight.grad)
                found += [number] * bool(inside & used)
                used |= inside
        return found

    def observe(self, answer: Callable[[list[str]], Any], history: list[str]) -> Any:
        """Take anything that yields numbers."""
        said = answer(history)
        plain = hasattr(said, "__next__") or isinstance(said, (set, range))
        return list(islice(said, len(history) + 1)) if plain else said

    def told(self, *arguments: Any) -> str:
        """Write the calls down."""
        return " ".join(arguments[0])

    def drawn(self, value: Any) -> Any:
        """Draw nothing: numbers of steps are names, not heights."""
        return None
