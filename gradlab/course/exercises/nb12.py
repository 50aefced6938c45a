"""The checks of the exercises in notebook 12; ``nb12.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from .checking import Case, Definition, variant


def adds_case(rng: random.Random) -> Case:
    """Return a case whose argument is a function ``backward(loss, w)``, either right or with one of three mistakes."""
    does = rng.choice(["adds", "writes over `.grad`", "keeps the first gradient", "adds each gradient twice"])

    def backward(loss: Tensor, w: Tensor) -> None:
        if does == "keeps the first gradient" and w.grad is not None:
            return
        if does == "writes over `.grad`":
            w.grad = None
        loss.backward(retain_graph=True)
        if does == "adds each gradient twice":
            loss.backward()

    return (backward,), f"a backward that {does}"


adds = Definition(
    case=adds_case,
    mistakes={
        "cannot-fail": lambda backward: True,
        "called-once": variant("adds", ("    backward(5 * w, w)\n", ""), ("== 7", "== 2")),
        "any-change": variant("adds", ("== 7", "!= 2")),
    },
    rounds=30,  # enough that each of the four versions of backward almost certainly occurs
)


def batches_used_case(rng: random.Random) -> Case:
    window, n = rng.randint(2, 5), rng.randint(3, 12)
    habit = rng.choice(["drops the last ones", "steps for the last ones, too", "clears before each step"])

    def loop(optimizer: Optimizer, batches: Iterable[Any], loss_of: Callable[[Any], Tensor]) -> None:
        optimizer.zero_grad()
        for i, batch in enumerate(batches, 1):
            if habit == "clears before each step" and i % window == 0:
                optimizer.zero_grad()
            loss_of(batch).backward()
            if i % window == 0 or (i == n and habit == "steps for the last ones, too"):
                optimizer.step()
                optimizer.zero_grad()

    return (loop, n), f"{n} batches, a loop with a window of {window} that {habit}"


batches_used = Definition(
    case=batches_used_case,
    mistakes={
        "all": lambda loop, n: list(range(n)),
        "reversed": variant("batches_used", ("!= 0", "== 0")),
        "windows-of-four": lambda loop, n: list(range(n // 4 * 4)),
    },
    rounds=20,
)
