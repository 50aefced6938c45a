"""The shown length and share of each batch in ``.grad``, against copies that are kept beside the run."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
import torch
from sampling import every
from torch import Tensor

from gradlab import Recipe, Run, tasks
from gradlab.drawing import draw
from gradlab.formatting import share_of_sum, short
from gradlab.scenes import RunScenes

torch.set_num_threads(1)
MOMENTS = 200
digits = cache(tasks.digits)
TASKS = {"line": tasks.line, "bowl": tasks.bowl, "digits": digits}


def recipe_by(chance: random.Random) -> Recipe:
    return Recipe(
        lr=chance.choice([0.003, 0.01, 0.05]),
        zero_grad=chance.random() < 0.5,
        set_to_none=chance.random() < 0.5,
        accumulate=chance.choice([1, 1, 2, 3, 8]),
        divide_loss=chance.random() < 0.5,
        amp=chance.choice(["off", "off", "bf16", "fp16"]),
        clip=chance.choice([None, None, 0.1, 1.0]),
        optimizer=chance.choice(["sgd", "momentum", "adam"]),
    )


class Copies:
    """The addition of each backward, as a plain difference of ``.grad``, scaled whenever ``.grad`` is."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.added: dict[int, Tensor] = {}
        self.before = self.grad()
        self.backwards = 0

    def grad(self) -> Tensor:
        params = self.run.model.parameters()
        return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten().double() for p in params])

    def statement(self) -> None:
        self.run.run_statement()
        now = self.grad()
        if self.run.statement.label == "backward":
            self.backwards += 1
            self.added[self.backwards] = now - self.before
        elif not now.any():
            self.added = {}
        elif not torch.equal(now, self.before):
            self.added = {number: part * (now.norm() / self.before.norm()) for number, part in self.added.items()}
        self.before = now


@pytest.mark.parametrize("seed", every(5, range(MOMENTS), 2))
def test_lengths_and_shares_are_those_of_copies(seed: int) -> None:
    chance = random.Random(seed)
    run = Run(TASKS[chance.choice(list(TASKS))](), recipe_by(chance))
    run.watch_gradients = True
    copies = Copies(run)
    for _ in range(chance.randrange(5, 90)):
        copies.statement()
    while not copies.added:
        copies.statement()
    scene: Any = RunScenes(run).gradient()
    scale = run.loop.scale_in_grad()
    total, left = copies.before / scale, set(copies.added)
    drawing = draw(scene)
    if not total.isfinite().all():
        assert drawing.notice == "inf or NaN in .grad"
        return
    for number, arrow in enumerate(scene.arrows):
        first, last = arrow.batches
        inside = [part for batch, part in copies.added.items() if first <= batch <= last]
        left -= set(range(first, last + 1))
        vector = torch.stack(inside).sum(0) / scale
        length, share = float(vector.norm()), float(vector @ total / (total @ total))
        rounding = 1e-6 * sum(float(part.norm()) for part in copies.added.values()) / scale
        assert arrow.length == pytest.approx(length, rel=2e-3, abs=rounding), (seed, arrow)
        assert arrow.share == pytest.approx(share, rel=2e-3, abs=2e-3 + rounding / float(total.norm())), (seed, arrow)
        text = f"length {short(arrow.length)}, {share_of_sum(arrow.share)}, "
        assert text in drawing.find(f"arrow {number}").words
    assert not left
