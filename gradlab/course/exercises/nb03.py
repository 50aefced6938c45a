"""The exercises of notebook 03."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from ..figures.curves import CourseFigure, curves
from ..instruments.swing import measure_period
from . import nb00
from .checking import Case, Definition, TroubleError
from .loops import trained
from .texts import Exercise, Verdict

_UPDATES = 200


def rolled(answer: Any, start: float, lr: float) -> list[float]:
    """Let a loop roll a ball, and return where it is after each step."""
    w, path = torch.tensor(start, requires_grad=True), list[float]()
    optimizer = torch.optim.SGD([w], lr=lr)
    optimizer.register_step_post_hook(lambda *_: path.append(w.item()))
    answer(w, optimizer, _UPDATES)
    if len(path) != _UPDATES:
        raise TroubleError(f"{_UPDATES} steps are wanted, your loop makes {len(path)}")
    return path


def ball_observed(answer: Any, start: float, lr: float) -> dict[str, bool]:
    path = rolled(answer, start, lr)
    early, late = (max(map(abs, path[at : at + 40])) for at in (0, _UPDATES - 40))
    moved = any(abs(place - start) > 1e-3 for place in path)
    return {"the ball moves": moved, "its swing shrinks": moved and late < 0.95 * early, "it stops": late < 0.02}


def share_kept(path: list[float], start: float, lr: float) -> float | None:
    """Return which share of the old sum each update keeps, None if that changes: the momentum of the loop."""
    places = [start, *path]
    sums = [(before - after) / lr for before, after in zip(places, path, strict=False)]
    pairs = [(old, new - place) for old, new, place in zip(sums, sums[1:], path, strict=False) if abs(old) > 0.01]
    shares = [kept / old for old, kept in pairs]
    return sum(shares) / len(shares) if shares and max(shares) - min(shares) < 0.02 else None


@dataclass(frozen=True, kw_only=True)
class _Ball(Definition):
    def check(self, exercise: Exercise, answer: object) -> Verdict:
        """Try an answer, and name the optimizer that a right one is."""
        verdict = super().check(exercise, answer)
        share = share_kept(rolled(answer, 1.0, 0.1), 1.0, 0.1) if verdict else None
        if share is None:
            return verdict
        said = "Each update now uses its own gradient only: this is plain SGD."
        if share > 0.005:
            said = f"Your line is friction: `.grad` keeps {share:.0%} of the old sum. This is SGD with `momentum={share:.2g}`."
        return replace(verdict, remark=f"{said} {verdict.remark}")


def ball_case(rng: random.Random) -> Case:
    start, lr = rng.uniform(0.5, 2.0), rng.uniform(0.05, 0.15)
    return (start, lr), f"w={start:.2f} and lr={lr:.2f}"


def friction(keeps: float, before_step: float = 1.0) -> Any:
    """Make a loop whose updates keep a share of ``.grad``, and apply a share of it."""

    def loop(w: Any, optimizer: Any, updates: int) -> None:
        for _ in range(updates):
            (w**2 / 2).backward()
            w.grad *= before_step
            optimizer.step()
            w.grad *= keeps

    return loop


def ball_drawn(answer: Any) -> CourseFigure:
    lines = {"without your line": rolled(friction(1.0), 1.0, 0.1)[:100]}
    with suppress(Exception, SystemExit):  # the verdict tells what is raised
        yours = rolled(answer, 1.0, 0.1)[:100]
        lines = lines if yours == lines["without your line"] else {"yours": yours, **lines}
    return curves(lines, "the weight, lr 0.1", reused=["without your line"], first=1)


stopped = _Ball(
    case=ball_case,
    observe=ball_observed,
    draw=ball_drawn,
    mistakes={
        "never-clears": friction(1.0),
        "too-little": friction(0.998),
        "does-not-move": friction(0.0, before_step=0.0),
    },
    rounds=4,
)

mended = nb00.train_one_epoch  # the same is wanted: an epoch of plain SGD


def fading_case(rng: random.Random) -> Case:
    batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(rng.randint(5, 8))]
    lr, beta = rng.uniform(0.02, 0.1), rng.choice((0.5, 0.8, 0.9))
    text = f"{len(batches)} batches, lr={lr:.3f} and beta={beta}: these are the weights afterwards"
    return (nn.Linear(3, 1), nn.functional.mse_loss, batches, lr, beta), text


def fading(old: str = "before", share: Any = lambda beta: beta) -> Any:
    """Make the loop: it multiplies ``.grad`` by a share, "before" or "after" backward."""

    def loop(model: Any, loss_fn: Any, batches: Any, lr: float, beta: float) -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        for x, y in batches:
            for when in ("before", "after"):
                for param in model.parameters():
                    if param.grad is not None and when == old:
                        param.grad *= share(beta)
                if when == "before":
                    loss_fn(model(x), y).backward()
            optimizer.step()

    return loop


momentum_by_hand = Definition(
    case=fading_case,
    observe=trained,
    mistakes={
        "never-fades": fading(share=lambda beta: 1.0),
        "clears": fading(share=lambda beta: 0.0),
        "fades-the-new-one": fading("after"),
        "loses-too-little": fading(share=lambda beta: 1 - beta),
    },
    rounds=6,
)


def swing(product: float, updates: int = 400) -> list[float]:
    """Return the path of plain SGD without clearing on a bowl, from 1; ``product`` is lr times curvature."""
    path, grad = [1.0], 0.0
    for _ in range(updates):
        grad += product * path[-1]
        path.append(path[-1] - grad)
    return path


def curvature_from_case(rng: random.Random) -> Case:
    lr, product = rng.uniform(0.01, 0.2), rng.uniform(0.5, 3.0)
    period = measure_period(swing(product)) / 2  # of the loss: the weight passes 0 twice in one of its own
    return (lr, period), f"lr={lr:.3f}, loss_period={period:.2f}"


curvature_from = Definition(
    case=curvature_from_case,
    mistakes={
        "times-lr": lambda lr, period: 2 * (1 - math.cos(math.pi / period)),
        "whole-period": lambda lr, period: 2 * (1 - math.cos(2 * math.pi / period)) / lr,
        "lost-two": lambda lr, period: (1 - math.cos(math.pi / period)) / lr,
    },
    relative=0.02,  # the period is measured, not computed
)
