"""The exercise ``mended_head``: three mistakes in one loop."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..base import Exercise, Mistake, short
from ..loops import descend, weights

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
    notebook = "10_loop_doctor"
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
        from ...doctor import watch

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
