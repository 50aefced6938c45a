"""The data of the two-ranks instrument: training loops, their runs in two real processes, and what each update did."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import mse_loss

from ...scenes import BatchArrow
from ..processes import launch

LOOP_UPDATES = 6
SAMPLES_EACH = 16  # number of samples in a micro-batch, for both ranks together
LR = 0.15
ACCUMULATE = (1, 3)
NO_SYNC = ("off", "all but the last", "all but the first")
FORGETS = ("none", "rank 1", "both")
_MICRO_BATCHES = 9  # enough for three updates of three micro-batches; a longer loop begins again with the first
LEFT_OVER, _HALF_OF = "left over", "\u00bd of "

Vector = tuple[float, float]


@dataclass(frozen=True)
class LoopSettings:
    """The settings of the loop that both ranks run, with values from ACCUMULATE, NO_SYNC and FORGETS."""

    accumulate: int = 1
    no_sync: str = "off"  # the micro-batches of an update that run inside ``no_sync()``
    forgets: str = "none"  # ranks that never call ``zero_grad()``

    @property
    def source(self) -> str:
        """The loop in plain PyTorch. Each item of ``windows`` yields this rank's share of an update's micro-batches."""
        clear = {
            "none": ["    optimizer.zero_grad()"],
            "rank 1": ["    if rank == 0:  # rank 1 forgets", "        optimizer.zero_grad()"],
            "both": ["    # optimizer.zero_grad() is forgotten"],
        }[self.forgets]
        body = ["loss = mse_loss(model(x), y)"]
        if self.accumulate > 1:
            body.append(f"loss = loss / {self.accumulate}")
        body.append("loss.backward()")
        counted = self.accumulate > 1 and self.no_sync != "off"
        if counted:
            quiet = f"i < {self.accumulate - 1}" if self.no_sync == "all but the last" else "i > 0"
            body = [f"with model.no_sync() if {quiet} else nullcontext():", *(f"    {line}" for line in body)]
        lines = [
            "model = DDP(model)",
            f"optimizer = torch.optim.SGD(model.parameters(), lr={LR})",
            "for window in windows:",
            *clear,
            "    for i, (x, y) in enumerate(window):" if counted else "    for x, y in window:",
            *(f"        {line}" for line in body),
            "    optimizer.step()",
        ]
        return "\n".join(lines)

    def line(self, call: str) -> int:
        """Return the number, from 1, of the first line of ``source`` that contains ``call``."""
        return next(number for number, line in enumerate(self.source.splitlines(), 1) if call in line)


def all_settings() -> list[LoopSettings]:
    """Return every LoopSettings, except those with no_sync and a single micro-batch, where no_sync has no effect."""
    every = [LoopSettings(*values) for values in product(ACCUMULATE, NO_SYNC, FORGETS)]
    return [each for each in every if each.accumulate > 1 or each.no_sync == "off"]


@cache
def make_data() -> tuple[torch.Tensor, torch.Tensor]:
    """Return the inputs (micro-batches x samples x 2) and the targets (micro-batches x samples x 1).

    Within a micro-batch, the best weights change from (2.4, -0.4) for the first sample to (0.6, 2.2) for the last one,
    so that the gradients of the two ranks differ from each other and from their mean.
    """
    generator = torch.Generator().manual_seed(0)
    turns = torch.rand(_MICRO_BATCHES, 1, generator=generator) + torch.arange(SAMPLES_EACH) * 0.375
    sizes = 1.0 + 0.6 * torch.rand(_MICRO_BATCHES, SAMPLES_EACH, generator=generator)
    inputs = torch.stack([sizes * (math.pi * turns).cos(), sizes * (math.pi * turns).sin()], dim=-1)
    along = torch.linspace(0.0, 1.0, SAMPLES_EACH).unsqueeze(-1)
    wanted = torch.tensor([2.4, -0.4]) * (1 - along) + torch.tensor([0.6, 2.2]) * along
    noise = 0.4 * torch.randn(_MICRO_BATCHES, SAMPLES_EACH, generator=generator)
    return inputs, ((inputs * wanted).sum(-1) + noise).unsqueeze(-1)


def run_ranks() -> dict[LoopSettings, list[Any]]:
    """Return the records of both ranks for each loop (see ``two_ranks_script.py``); the first call runs the processes.

    Raises RuntimeError, with a message for learners, if the processes failed. ``clear_failure`` allows another try.
    """
    result = _results()
    if isinstance(result, str):
        raise RuntimeError(result)
    return result


def clear_failure() -> bool:
    """Clear a cached failure, and return whether the next ``run_ranks()`` runs the processes."""
    if _results.cache_info().currsize and isinstance(_results(), str):
        _results.cache_clear()
    return not _results.cache_info().currsize


@cache
def _results() -> dict[LoopSettings, list[Any]] | str:
    """Run all loops in two processes. Return both ranks' records by loop or, on failure, a message for learners.

    A failure is cached, too: a start may take minutes, and an instrument calls this function at every slider move.
    """
    settings, (inputs, targets) = all_settings(), make_data()
    loops = [{"source": each.source, "updates": LOOP_UPDATES, "accumulate": each.accumulate} for each in settings]
    try:
        with tempfile.TemporaryDirectory(prefix="gradlab-ranks-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            text = files(__package__).joinpath("two_ranks_script.py").read_text(encoding="utf-8")
            (folder / "rank.py").write_text(text, encoding="utf-8")
            task = {"inputs": inputs.tolist(), "targets": targets.tolist(), "loops": loops}
            (folder / "loops.json").write_text(json.dumps(task), encoding="utf-8")
            result = launch(folder / "rank.py", processes=2, seconds=60.0)
            if not result:
                return result.error
            recorded = [json.loads((folder / f"seen-{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)]
    except (OSError, RuntimeError, ValueError) as error:
        return f"Two processes could not be started here: {error}"
    return dict(zip(settings, (list(both) for both in zip(*recorded, strict=True)), strict=True))


def whole_gradient(weights: Vector, first: int, accumulate: int) -> Vector:
    """Return the gradient of the mean loss over all samples of ``accumulate`` micro-batches from index ``first`` on."""
    indices = torch.arange(first, first + accumulate) % _MICRO_BATCHES
    inputs, targets = (part[indices].flatten(0, 1) for part in make_data())
    w = torch.tensor([weights], requires_grad=True)
    (gradient,) = torch.autograd.grad(mse_loss(inputs @ w.T, targets), w)
    return gradient[0, 0].item(), gradient[0, 1].item()


@cache
def one_process(accumulate: int) -> tuple[Vector, ...]:
    """Return the weights of a single process that trains on all samples, at the start and after each update."""
    path: list[Vector] = [(0.0, 0.0)]
    for update in range(LOOP_UPDATES):
        (w1, w2), (g1, g2) = path[-1], whole_gradient(path[-1], update * accumulate, accumulate)
        path.append((w1 - LR * g1, w2 - LR * g2))
    return tuple(path)


@dataclass(frozen=True)
class RankGradient:
    """The ``.grad`` of one rank, as its process recorded it."""

    grad: Vector
    arrows: tuple[BatchArrow, ...]  # parts of ``grad``, beginning with what is left over from earlier updates, if any


@dataclass(frozen=True)
class RanksUpdate:
    """The gradients and weights of both ranks in one update, with those of a single process for comparison."""

    number: int  # index of the update, from 1
    before: tuple[RankGradient, RankGradient]  # gradient of each rank just before the update's last all-reduce
    stepped: tuple[RankGradient, RankGradient]  # gradient of each rank that ``step()`` applies
    messages: tuple[int, ...]  # bytes that each rank sent in each all-reduce so far
    paths: tuple[tuple[Vector, ...], tuple[Vector, ...]]  # weights of each rank, from the start until after the step
    alone: tuple[Vector, ...]  # weights of one process with all samples, from the start until after the step
    whole: Vector  # gradient of one process with all samples of the update, at the weights of rank 0

    @property
    def off(self) -> float:
        """The distance between ``whole`` and the ``.grad`` that rank 0 applies, relative to the length of ``whole``."""
        return math.dist(self.stepped[0].grad, self.whole) / math.hypot(*self.whole)

    @property
    def apart(self) -> float:
        """The distance between the weights of the two ranks after the step."""
        return math.dist(self.paths[0][-1], self.paths[1][-1])


_Parts = dict[str, Any]  # name of a contribution to .grad -> its vector


def updates_of(settings: LoopSettings, recorded: Sequence[Any]) -> list[RanksUpdate]:
    """Return the updates of a loop from ``recorded``, which has one list of records for each rank.

    The parts of ``.grad`` follow three rules: ``backward()`` adds the rank's own gradient; an all-reduce replaces each
    ``.grad`` with the mean of both, which holds half of each rank's contributions; ``zero_grad()`` removes all parts.
    """
    window, messages, updates = settings.accumulate, list[int](), list[RanksUpdate]()
    parts: list[_Parts] = [{}, {}]
    paths: list[list[Vector]] = [[(0.0, 0.0)], [(0.0, 0.0)]]

    def gradients_at(number: int, grads: Sequence[Any]) -> tuple[RankGradient, RankGradient]:
        rank_0, rank_1 = (RankGradient((g[0], g[1]), _arrows(parts[rank], g, number)) for rank, g in enumerate(grads))
        return rank_0, rank_1

    for number, both in enumerate(zip(*recorded, strict=True), 1):
        whole = whole_gradient(paths[0][-1], (number - 1) * window, window)
        for rank, record in enumerate(both):
            parts[rank] = {} if record["cleared"] is None else {LEFT_OVER: sum(parts[rank].values())}
        last = max(turn for turn, micro in enumerate(both[0]["micros"]) if micro["sent"])
        for turn, micros in enumerate(zip(*(record["micros"] for record in both), strict=True)):
            for rank, micro in enumerate(micros):
                name = f"rank {rank}"
                parts[rank][name] = parts[rank].get(name, 0.0) + np.array(micro["own"])
            if turn == last:
                before = gradients_at(number, [micro["before"] for micro in micros])
            if micros[0]["sent"]:
                messages += micros[0]["sent"]
                parts = [_mean(parts), _mean(parts)]
        stepped = gradients_at(number, [micro["after"] for micro in micros])
        for path, record in zip(paths, both, strict=True):
            path.append(tuple(record["weights"]))
        alone = one_process(window)[: number + 1]
        ways = tuple(paths[0]), tuple(paths[1])
        updates.append(RanksUpdate(number, before, stepped, tuple(messages), ways, alone, whole))
    return updates


def _mean(parts: Sequence[_Parts]) -> _Parts:
    mean: _Parts = {LEFT_OVER: 0.0} if any(LEFT_OVER in each for each in parts) else {}
    for each in parts:
        for name, vector in each.items():
            half = _HALF_OF + name if name.startswith("rank") else name
            mean[half] = mean.get(half, 0.0) + vector / 2
    return mean


def _arrows(parts: _Parts, grad: Vector, number: int) -> tuple[BatchArrow, ...]:
    """Return ``parts`` as arrows; a part left over from earlier updates was applied by one or more earlier steps."""
    arrows = []
    for name, (x, y) in parts.items():
        old = name == LEFT_OVER
        share = float(np.dot((x, y), grad) / np.dot(grad, grad))
        batches, applied = (1, number - 1) if old else (number, number), (1, number - 1) if old else (0, 0)
        arrows.append(BatchArrow(batches, float(x), float(y), share, applied, (name,)))
    return tuple(arrows)
