"""The exercise ``stale_steps``."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import torch

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    history = rng.choices(("zero", "backward", "backward", "step", "step"), k=rng.randint(4, 16))
    return Case(history, text=" ".join(history))


def reference(history: list[str]) -> list[int]:
    """Let PyTorch say it: backward number k adds the bit 2**k to .grad."""
    weight, applied, stale = torch.zeros((), dtype=torch.float64, requires_grad=True), 0, []
    for k, call in enumerate(history):
        if call == "zero":
            weight.grad = None
        elif call == "backward":
            (weight * 2**k).backward()
        else:
            held = 0 if weight.grad is None else int(weight.grad)
            stale.append(held & applied)
            applied |= held
    return [number for number, old in enumerate(stale, 1) if old]


def observe(answer: Callable[[list[str]], Any], history: list[str]) -> object:
    """Take anything that yields numbers."""
    given = answer(history)
    plain = hasattr(given, "__next__") or isinstance(given, (set, range))
    return list(islice(given, len(history) + 1)) if plain else given


def steps(history: Iterable[str], wanted: Callable[[list[bool]], bool] = any) -> list[int]:
    """Return the numbers of the steps that are wanted, by what is in .grad: of each gradient, whether it is used."""
    number, used, found = 0, list[bool](), []
    for call in history:
        if call == "zero":
            used = []
        elif call == "backward":
            used.append(False)
        else:
            number += 1
            found += [number] * wanted(used)
            used = [True] * len(used)
    return found


def places(history: list[str]) -> list[int]:
    return [place for place, call in enumerate(history) if call == "step"]


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=observe,
    mistakes={
        "windows": lambda history: steps(history, lambda used: len(used) > 1),
        "never-clears": lambda history: steps(call for call in history if call != "zero"),
        "from-zero": lambda history: [number - 1 for number in steps(history)],
        "places": lambda history: [places(history)[number - 1] for number in steps(history)],
        "the-others": lambda history: steps(history, lambda used: not any(used)),
        "new-ones-only": lambda history: steps(history, lambda used: any(used) and not all(used)),
        # as if every step found a gradient
        "empty": lambda history: steps(" ".join(history).replace("step", "backward step").split()),
    },
    plot_values=lambda value: None,  # numbers of steps are names, not heights
    rounds=60,
)
