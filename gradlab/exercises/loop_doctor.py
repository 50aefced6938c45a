"""The exercises of notebook 10."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from .base import Exercise, Mistake, short
from .loops import descend, weights

_HOME = "10_loop_doctor"


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
    notebook = _HOME
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


_CLOSE = 1e-4
_BATCHES = 40  # enough for the doctor to be sure


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a loop: its weights, what it returns, and what the doctor finds."""

    weights: Tensor
    mean: Any
    findings: tuple[tuple[str, int], ...] = ()
    """Codes and lines, hints left out."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outcome) or {code for code, _ in self.findings} != {
            code for code, _ in other.findings
        }:
            return False
        mine, theirs = _number(self.mean), _number(other.mean)
        same = mine == theirs or (mine is not None and theirs is not None and abs(mine - theirs) < _CLOSE)
        return same and torch.allclose(self.weights, other.weights, atol=_CLOSE)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.findings:
            code, line = self.findings[0]
            return f"{len(self.findings)} of the doctor's findings, first {code} in line {line}"
        mean = _number(self.mean)
        said = f"a mean loss of {mean:.4f}" if mean is not None else f"no mean loss but {short(self.mean)}"
        return f"no findings, weights of norm {self.weights.norm():.3f}, {said}"


def _number(value: Any) -> float | None:
    """Return a number that hangs on no graph, None for anything else."""
    if isinstance(value, Tensor) and value.numel() == 1 and not value.requires_grad:
        value = value.item()
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _loop(
    *,
    whole: bool = True,
    early: bool = False,
    lowered: bool = True,
    gamma: float = 0.99,
    number: bool = True,
    result: Callable[[Any, Any, int], Any] = lambda total, last, count: total / count,
) -> Callable[..., Any]:
    """Make the loop that is asked for, or one with mistakes of the stub left in it, or with new ones."""

    def loop(body: nn.Module, head: nn.Module, loss_fn: Any, batches: Any, lr: float) -> Any:
        model, total, loss = nn.Sequential(body, head), 0.0, None
        optimizer = torch.optim.SGD((model if whole else body).parameters(), lr=lr)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=gamma)
        for x, y in batches:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            if early:
                scheduler.step()
            optimizer.step()
            if lowered and not early:
                scheduler.step()
            total += loss.item() if number else loss
        return result(total, loss, len(batches))

    return loop


class ThreeMistakes(Exercise):
    """A loop that is ill in three places; the doctor looks on while it is mended."""

    name = "mended_head"
    notebook = _HOME
    title = "Three mistakes in one loop"
    level, minutes = "medium", 12
    spec = (
        "This loop trains a head on top of a body, lowers lr by one percent after each update, and returns the mean "
        "loss: it has three mistakes, mend them."
    )
    stub = """
def mended_head(body, head, loss_fn, batches, lr):
    model, total = nn.Sequential(body), 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
    model.append(head)
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        scheduler.step()
        optimizer.step()
        total += loss
    return total / len(batches)
"""
    hints = (
        "Let the doctor help: the check says what it finds. Mend one thing and run it again.",
        "What does the optimizer hold (patient 3)? What hangs on `total` (patient 7)? And which lr does the first "
        "update have?",
        "First the whole model, then the optimizer. `loss.item()` is a number. `scheduler.step()` comes last.",
    )
    mistakes = (
        Mistake(
            "head-left-out",
            "The doctor finds one more: the optimizer does not hold the head. Make it when the model is whole.",
            _loop(whole=False),
        ),
        Mistake(
            "scheduler-first",
            "The doctor finds one more: `scheduler.step()` before `optimizer.step()`. The first update should have the "
            "full lr.",
            _loop(early=True),
        ),
        Mistake(
            "history-kept",
            "The doctor finds one more: `total` holds on to the graph of every batch. Add a number.",
            _loop(number=False),
        ),
        Mistake(
            "lr-stays", "The lr is not lowered any more: the scheduler belongs into the loop.", _loop(lowered=False)
        ),
        Mistake("ten-percent", "The lr goes down by ten percent. It was one: gamma=0.99.", _loop(gamma=0.9)),
        Mistake(
            "sum",
            "The weights are right. You return the sum of the losses, not their mean.",
            _loop(result=lambda total, last, count: total),
        ),
        Mistake(
            "last",
            "The weights are right. You return the last loss, not the mean of all.",
            _loop(result=lambda total, last, count: last.item()),
        ),
        Mistake(
            "last-divided",
            "The weights are right. You return the loss of the last batch, divided by their number.",
            _loop(result=lambda total, last, count: last.item() / count),
        ),
    )
    rounds = 2
    seconds = 20.0  # the doctor looks on

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small body and head, a loss, batches, and an lr."""
        body, head = nn.Sequential(nn.Linear(6, 12), nn.Tanh()), nn.Linear(12, 3)
        batches = [(torch.randn(8, 6), torch.randint(3, (8,))) for _ in range(_BATCHES)]
        return body, head, nn.functional.cross_entropy, batches, dice.uniform(0.3, 0.5)

    def right(self, body: nn.Module, head: nn.Module, loss_fn: Any, batches: Any, lr: float) -> Any:
        """Make each update by hand, which touches no .grad, and lower the lr by hand."""
        parameters, losses = [*body.parameters(), *head.parameters()], []
        for t, (x, y) in enumerate(batches):
            loss = loss_fn(head(body(x)), y)
            descend(loss, parameters, lr * 0.99**t)
            losses.append(loss.item())
        return Outcome(_weights(body, head), sum(losses) / len(losses))

    def observe(self, answer: Callable[..., Any], *arguments: Any) -> Any:
        """Let it run under watch."""
        from ..doctor import watch

        with warnings.catch_warnings(), watch() as report:
            warnings.simplefilter("ignore")  # PyTorch notices one of the mistakes, too
            mean = answer(*arguments)
        found = tuple((finding.code, finding.line or 0) for finding in report if finding.severity != "hint")
        return Outcome(_weights(*arguments[:2]), mean, found)

    def told(self, *arguments: Any) -> str:
        """Say how it was tried."""
        return f"{_BATCHES} batches and lr={arguments[-1]:.3f}"


def _weights(body: nn.Module, head: nn.Module) -> Tensor:
    return torch.cat([weights(body), weights(head)])


def _differences(alive: Sequence[int]) -> list[int]:
    return [later - before for before, later in pairwise(alive)]


class Leak(Exercise):
    """Reading a slope off a curve that has other bends."""

    name = "leak"
    notebook = _HOME
    title = "How fast does it leak?"
    level, minutes = "harder", 10
    spec = (
        "Write `leak(alive)`: given the bytes that are alive after each of 200 updates, return how many bytes are lost "
        "at each update, 0 if nothing leaks, to within 3%."
    )
    stub = """
def leak(alive):
    return None  # your answer
"""
    hints = (
        "Look at the differences from one update to the next. What do most of them have in common?",
        "A few differences are far off. The mean believes them all. Who does not?",
    )
    mistakes = (
        Mistake(
            "warm-up",
            "The first updates are in it, and they are no leak: the optimizer makes its state.",
            lambda alive: (alive[-1] - alive[0]) / 199,
        ),
        Mistake("total", "That is for all updates together: divide.", lambda alive: alive[-1] - alive[0]),
        Mistake("range", "That is the whole range, warm-up and all.", lambda alive: max(alive) - min(alive)),
        Mistake(
            "largest",
            "That is the largest step up: an epoch's end, or the warm-up.",
            lambda alive: max(_differences(alive)),
        ),
        Mistake(
            "last",
            "That is the last difference alone: it may be an epoch's end.",
            lambda alive: alive[-1] - alive[-2],
        ),
        Mistake(
            "two-ends",
            "Close, but it depends on whether the two ends are short batches.",
            lambda alive: (alive[-1] - alive[100]) / 99,
        ),
        Mistake("sign", "From the end to the start: the sign is wrong.", lambda alive: -median(_differences(alive))),
    )
    rounds = 25  # range and total differ only where the last batch is a short one, and much shorter
    relative, absolute = 0.03, 5.0

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return bytes alive: a base, a warm-up, an epoch's shorter last batch, and what is lost."""
        lost = 0 if dice.random() < 0.15 else dice.randrange(500, 60_000)
        # 10, 20 and 25 divide 200: then the last batch is a short one, and that is what tells the mistakes apart.
        epoch = dice.choice((10, 20, 25)) if dice.random() < 0.7 else dice.randrange(9, 30)
        base, state = dice.randrange(10**6, 10**7), dice.randrange(10**6, 10**7)
        less = dice.randrange(10**4, 10**6)
        short = [(t + 1) % epoch == 0 for t in range(200)]
        self._lost = lost
        return ([base + state * min(t, 3) // 3 - less * short[t] + lost * t for t in range(200)],)

    def right(self, alive: list[int]) -> Any:
        """Return what the bytes were made with."""
        return self._lost

    def told(self, *arguments: Any) -> str:
        """Show the first bytes."""
        return "bytes that begin " + ", ".join(f"{alive:,}" for alive in arguments[0][:4]) + " ..."


EXERCISES = (StaleSteps, ThreeMistakes, Leak)
