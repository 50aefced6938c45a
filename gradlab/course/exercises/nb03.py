"""The checks of the exercises in notebook 03; ``nb03.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch

from ..figures.curves import CourseFigure, curves
from . import exercise_texts, nb00
from .checking import Case, Definition, TroubleError, stub_of, variant
from .loops import trained
from .texts import Exercise, Verdict

_UPDATES = 200


def rolled(answer: Any, start: float, lr: float) -> list[tuple[float, float]]:
    """Run a loop from the weight ``start``; return the weight and ``.grad`` (0 for None) right before each step."""
    w, rows = torch.tensor(start, requires_grad=True), list[tuple[float, float]]()
    optimizer = torch.optim.SGD([w], lr=lr)
    optimizer.register_step_pre_hook(lambda *_: rows.append((w.item(), 0.0 if w.grad is None else w.grad.item())))
    answer(w, optimizer, _UPDATES)
    if len(rows) != _UPDATES:
        raise TroubleError(f"{_UPDATES} steps are expected, but your loop makes {len(rows)}")
    return rows


def ball_observed(answer: Any, start: float, lr: float) -> dict[str, bool]:
    path = [abs(w) for w, _ in rolled(answer, start, lr)]
    late, shrinks = max(path[-40:]), max(path[-40:]) < 0.95 * max(path[:40])
    return {"the ball moves": min(path) < 0.99 * start, "its swing shrinks": shrinks, "it stops": late < 0.02}


class _Ball(Definition):
    def check(self, exercise: Exercise, answer: object) -> Verdict:
        """Check an answer; name the equivalent optimizer if a right answer keeps a constant share of ``.grad``."""
        if not (verdict := super().check(exercise, answer)):
            return verdict
        shares = [(grad - w) / before for (_, before), (w, grad) in pairwise(rolled(answer, 1.0, 0.1)[:5])]
        share, name = shares[0], "Each update uses its own gradient only: this is plain SGD."
        if share > 0.005:
            name = f"Your line is friction: {share:.0%} of the old sum stays. This is SGD with `momentum={share:.2g}`."
        return replace(verdict, remark=name) if max(shares) - min(shares) < 0.01 and share < 0.99 else verdict


def ball_case(rng: random.Random) -> Case:
    start, lr = rng.uniform(0.5, 2.0), rng.uniform(0.05, 0.15)
    return (start, lr), f"w={start:.2f} and lr={lr:.2f}"


def ball_drawn(answer: Any) -> CourseFigure:
    loops = {"yours": answer, "as it was": stub_of(exercise_texts()["stopped"].stub)}
    lines = {name: [w for w, _ in rolled(loop, 1.0, 0.1)[:100]] for name, loop in loops.items()}
    if lines["yours"] == lines["as it was"]:
        del lines["yours"]
    return curves(lines, "the ball, lr 0.1", reused=["as it was"], y="weight", ends=False)


stopped = _Ball(
    case=ball_case,
    observe=ball_observed,
    draw=ball_drawn,
    mistakes={
        "never-clears": variant("stopped", ("optimizer.zero_grad()", "pass")),
        "too-little": variant(
            "stopped", ("optimizer.zero_grad()", "pass"), ("step()", "step()\n        w.grad *= 0.998")
        ),
        "does-not-move": variant("stopped", ("optimizer.step()", "optimizer.zero_grad()\n        optimizer.step()")),
    },
    rounds=4,
)

mended = Definition(
    case=nb00.train_one_epoch_case,
    observe=trained,
    mistakes={
        "does-not-move": lambda *arguments: None,
        "never-clears": variant("mended", ("optimizer.zero_grad()", "pass")),
        "one-step": variant("mended", ("optimizer.zero_grad()", "pass"), ("    optimizer.step()", "optimizer.step()")),
    },
    rounds=4,
)


def momentum_case(rng: random.Random) -> Case:
    arguments, text = nb00.train_one_epoch_case(rng)
    beta = rng.choice((0.6, 0.8, 0.9))
    return (*arguments, beta), f"beta={beta}, {text}"


momentum_by_hand = Definition(
    case=momentum_case,
    observe=trained,
    mistakes={
        "never-fades": variant("momentum_by_hand", ("*= beta", "*= 1")),
        "clears": variant("momentum_by_hand", ("*= beta", "*= 0")),
        "fades-the-new-one": variant("momentum_by_hand", ("lr=lr", "lr=lr * beta")),
        "one-minus-beta": variant("momentum_by_hand", ("*= beta", "*= 1 - beta")),
    },
    rounds=6,
)
