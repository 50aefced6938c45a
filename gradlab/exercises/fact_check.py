"""Exercises of notebook 12: from facts to a verdict, where a claim flips, and an experiment that decides one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .base import Exercise, Mistake

_HOME = "12_fact_check"


def _known(facts: dict[str, bool | None]) -> list[bool]:
    return [fact for fact in facts.values() if fact is not None]


def _ruled(facts: list[bool]) -> str:
    return "holds" if all(facts) else "depends" if any(facts) else "does not hold"


class VerdictOf(Exercise):
    """The rule that this notebook judges by."""

    name = "verdict_of"
    notebook = _HOME
    title = "The rule itself"
    level, minutes = "easy", 4
    spec = (
        "Write `verdict_of(facts)`: given a dict of facts, each True, False or None (could not be tried), return "
        '"holds", "depends", "does not hold", or "not judged" if nothing could be tried.'
    )
    stub = """
def verdict_of(facts):
    return None  # your answer
"""
    hints = (
        "First take out what could not be tried. What is left is a list of True and False.",
        "`all(known)` and `any(known)` are two of the three questions. What do they say about an empty list?",
        "Ask for the empty list before you ask for `all`, because `all([])` is True.",
    )
    mistakes = (
        Mistake(
            "all-of-nothing",
            "Nothing was tried, and you rule on it: `all([])` is True, `any([])` is False.",
            lambda facts: _ruled(_known(facts)),
        ),
        Mistake(
            "not-any-of-nothing",
            "Nothing was tried, and you say that it does not hold. That is a verdict, too.",
            lambda facts: "does not hold" if not any(_known(facts)) else _ruled(_known(facts)),
        ),
        Mistake(
            "none-is-false",
            "You count None as False. What could not be tried does not speak against a claim.",
            lambda facts: _ruled([bool(fact) for fact in facts.values()]) if _known(facts) else "not judged",
        ),
        Mistake(
            "all-of-all",
            "You count None as False. Take out what could not be tried, and see whether anything is left.",
            lambda facts: _ruled([bool(fact) for fact in facts.values()]),
        ),
        Mistake(
            "never-depends",
            "You know black and white only: true in some cases and not in others is its own verdict.",
            lambda facts: ("holds" if all(_known(facts)) else "does not hold") if _known(facts) else "not judged",
        ),
        Mistake(
            "one-is-enough",
            "One case in which it is true is not enough for a claim to hold.",
            lambda facts: ("holds" if any(_known(facts)) else "does not hold") if _known(facts) else "not judged",
        ),
    )
    rounds = 60  # so that each of the five kinds of case comes up

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return facts of one of five kinds: all true, none, some, none known, true as far as known."""
        kinds: tuple[tuple[bool | None, ...], ...] = ((True,), (False,), (True, False), (None,), (True, None))
        kind = dice.choice(kinds)
        facts = [*kind, *(dice.choice(kind) for _ in range(dice.randrange(3)))]
        dice.shuffle(facts)
        return ({f"case {at}": fact for at, fact in enumerate(facts, 1)},)

    def right(self, facts: dict[str, bool | None]) -> Any:
        """Count: how many were tried, how many of them are true."""
        tried = sum(fact is not None for fact in facts.values())
        true = sum(fact is True for fact in facts.values())
        return "not judged" if not tried else {tried: "holds", 0: "does not hold"}.get(true, "depends")


def _settles_below(xs: list[float], divide: bool) -> float:
    """Find by trial the lr from which on the loop of the exercise grows, many values of lr at once."""
    low, high, many = 1e-3, 100.0, 32
    for _ in range(3):
        lrs = torch.logspace(math.log10(low), math.log10(high), many, dtype=torch.float64)
        w = torch.ones(many, dtype=torch.float64, requires_grad=True)
        for _ in range(5):
            w.grad = None
            for x in xs:
                loss = ((w * x) ** 2).sum()
                (loss / len(xs) if divide else loss).backward()
            with torch.no_grad():
                w -= lrs * _grad(w)
        settled = int((w.detach().abs() < 1).sum())
        low, high = lrs[max(settled - 1, 0)].item(), lrs[min(settled, many - 1)].item()
    return (low * high) ** 0.5


def _grad(w: Tensor) -> Tensor:
    assert w.grad is not None
    return w.grad


class FlipsAt(Exercise):
    """D3 has a number in it: from which lr on does it not hold?"""

    name = "flips_at"
    notebook = _HOME
    title = "Where D3 flips"
    level, minutes = "medium", 8
    spec = (
        "A model with one weight, `w * x`, and the loss `(w * x - y) ** 2`, one sample at a time, one SGD step after "
        "all samples in the list `xs`: write `flips_at(xs, divide)`, the lr above which it does not learn, where "
        "`divide` says whether each loss is divided by `len(xs)`."
    )
    stub = """
def flips_at(xs, divide):
    return None  # your answer
"""
    hints = (
        "What is the second derivative (the curvature) of one loss, seen from w?",
        "That of (w * x - y) ** 2 is 2 * x ** 2. Adding up gradients adds up curvatures.",
        "Plain SGD settles as long as lr * curvature < 2 (notebook 03).",
    )
    mistakes = (
        Mistake(
            "lost-two",
            "Twice too large: the second derivative of a square has a 2 in it.",
            lambda xs, divide: 2 / sum(x * x for x in xs) * (len(xs) if divide else 1),
        ),
        Mistake(
            "best-lr",
            "That lr reaches the bottom in one step. It can be larger, and still settle.",
            lambda xs, divide: 1 / sum(2 * x * x for x in xs) * (len(xs) if divide else 1),
        ),
        Mistake(
            "never-divides",
            "With `divide` the curvature is divided by the window, too.",
            lambda xs, divide: 1 / sum(x * x for x in xs),
        ),
        Mistake(
            "always-divides",
            "Without `divide` the gradients are added up, and nobody divides them.",
            lambda xs, divide: len(xs) / sum(x * x for x in xs),
        ),
        Mistake(
            "wrong-way",
            "The other way round: a smaller gradient allows a larger lr.",
            lambda xs, divide: 1 / sum(x * x for x in xs) / (len(xs) if divide else 1),
        ),
        Mistake(
            "square-of-the-sum",
            "You squared the sum. Each sample has its own curvature: sum the squares.",
            lambda xs, divide: 1 / sum(xs) ** 2 * (len(xs) if divide else 1),
        ),
    )
    relative = 0.01  # it is measured, not computed

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return two to six samples, and whether the loss is divided."""
        return [round(dice.uniform(0.5, 5), 1) for _ in range(dice.randint(2, 6))], dice.random() < 0.5

    def right(self, xs: list[float], divide: bool) -> Any:
        """Let the loop run with many values of lr, and look where it turns."""
        return _settles_below(xs, divide)

    def told(self, *arguments: Any) -> str:
        """Name both."""
        return f"xs={arguments[0]}, divide={arguments[1]}"


class _Heads(nn.Module):
    """A body with two heads; a batch names those that it asks."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.heads = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])

    def loss(self, batch: tuple[Tensor, Tensor, tuple[int, ...]]) -> Tensor:
        """Return the squared error of all heads that are asked."""
        x, y, asked = batch
        body = torch.tanh(self.body(x))
        return torch.stack([(self.heads[head](body) - y).square().mean() for head in asked]).sum()


_OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD with weight decay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
}


def _left_out(batches: Any) -> bool:
    return any(len(asked) == 1 for _, _, asked in batches)


def _plain(build: Any, make: Any) -> bool:
    settings = make(build().parameters()).defaults
    return settings.get("momentum") == 0 and settings.get("weight_decay") == 0 and "betas" not in settings


class SameEffect(Exercise):
    """An experiment that decides B7."""

    name = "same_effect"
    notebook = _HOME
    title = "An experiment that decides"
    level, minutes = "harder", 8
    spec = (
        "Write `same_effect(build, make, batches)`: train `build()` with the optimizer `make(parameters)` on "
        "`batches`, once cleared to None and once to zeros, and say (True or False) whether both end with the same "
        "weights; the loss of a batch is `model.loss(batch)`."
    )
    stub = """
def same_effect(build, make, batches):
    return None  # your answer
"""
    hints = (
        "Write the loop once, as a function of `set_to_none`, and call it twice.",
        "Each run needs a model and an optimizer of its own. `build()` gives the same weights each time.",
        "`torch.nn.utils.parameters_to_vector(model.parameters())` puts all weights in a row, "
        "and `torch.equal` compares two.",
    )
    mistakes = (
        Mistake(
            "always-same",
            "You say True every time. Do the runs differ in set_to_none, do they see all batches, "
            "and do you compare the weights of both heads?",
            lambda build, make, batches: True,
        ),
        Mistake(
            "always-different",
            "You say False every time. Does each run begin with a fresh `build()` and an optimizer of its own, "
            "and do you compare numbers, not objects?",
            lambda build, make, batches: False,
        ),
        Mistake(
            "upside-down",
            "The other way round: you say True where they differ.",
            lambda build, make, batches: _left_out(batches) and not _plain(build, make),
        ),
        Mistake(
            "unused-is-enough",
            "You say False whenever a weight is left out. What does plain SGD do with a gradient of 0?",
            lambda build, make, batches: not _left_out(batches),
        ),
        Mistake(
            "only-the-optimizer",
            "You look at the optimizer only. Where every weight gets a gradient, even Adam ends the same.",
            lambda build, make, batches: _plain(build, make),
        ),
    )
    rounds = 30

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a way to build a model, one to make an optimizer, and batches that may leave a head out."""
        seed, self._name = dice.randrange(2**31), "SGD"
        if dice.random() < 0.5:  # half plain SGD, half not, so that no kind of case is rare
            self._name = dice.choice(list(_OPTIMIZERS)[1:])
        self._pause = dice.random() < 0.5
        # The first optimizer of a process loads half of PyTorch; that must not count as time of the answer.
        _OPTIMIZERS[self._name]([nn.Parameter(torch.zeros(1))]).zero_grad()

        def build() -> nn.Module:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                return _Heads()

        asked = [(0, 1), *[(0,) if self._pause else (0, 1)] * 3, (0, 1)]
        batches = [(torch.randn(4, 3), torch.randn(4, 1), heads) for heads in asked]
        return build, _OPTIMIZERS[self._name], batches

    def right(self, build: Any, make: Any, batches: Any) -> Any:
        """Say what theory says: they differ where a weight is left out and its rule moves it without a gradient."""
        return self._name == "SGD" or not self._pause

    def told(self, *arguments: Any) -> str:
        """Say which optimizer, and whether a head is left out."""
        return f"{self._name}, {'one head left out for three batches' if self._pause else 'both heads always asked'}"


EXERCISES = (VerdictOf, FlipsAt, SameEffect)
