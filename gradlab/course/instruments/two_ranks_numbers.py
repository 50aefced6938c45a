"""The numbers of two ranks: the loops, run in two real processes, and every moment of them."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
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

MOMENTS = 24
"""Statements that are stepped through: 6 updates of 4, 4 updates of 6 or 3 updates of 8."""
SAMPLES_EACH = 16
"""Of a micro-batch, both ranks together."""
LR = 0.15
ACCUMULATE = (1, 2, 3)
NO_SYNC = ("off", "all but the last", "all but the first")
FORGETS = ("none", "rank 1", "both")
_MICRO_BATCHES = 9
"""As many as the longest loop needs: three windows of three."""
_HALVES = {1.0: "", 0.5: "\u00bd of "}

Vector = tuple[float, float]


@dataclass(frozen=True)
class LoopSettings:
    """What the loop of both ranks is made of; each field has one of the values listed above."""

    accumulate: int = 1
    no_sync: str = "off"
    """Which micro-batches of a window are inside ``no_sync()``."""
    forgets: str = "none"
    """Which ranks never call ``zero_grad()``."""

    @property
    def updates(self) -> int:
        """Updates in all; one is zero_grad, a backward and an all-reduce for each micro-batch, and step."""
        return MOMENTS // (2 + 2 * self.accumulate)

    @property
    def source(self) -> str:
        """The loop, in plain PyTorch; ``windows`` holds this rank's share of every micro-batch."""
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

    def line(self, statement: str) -> int:
        """Return the line of the text that belongs to a statement; 0 before the first."""
        word = {"all-reduce": "backward", "step": "step()"}.get(statement, statement)
        lines = enumerate(self.source.splitlines(), 1)
        return next((number for number, line in lines if word in line), 0)


def all_settings() -> list[LoopSettings]:
    """Return every combination that differs in what it does: without a window, no_sync has no effect."""
    every = [LoopSettings(*values) for values in product(ACCUMULATE, NO_SYNC, FORGETS)]
    return [each for each in every if each.accumulate > 1 or each.no_sync == "off"]


@cache
def make_data() -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs (micro-batches x samples x 2) and targets (micro-batches x samples x 1).

    The samples of a micro-batch have different answers: the first are best described by the weights (2.4, -0.4), the
    last by (0.6, 2.2). So the ranks disagree, as ranks do, and what each wants alone is not what both want together.
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
    """Return what both processes have seen of each loop, as ``two_ranks_script.py`` says; they run once.

    Raises RuntimeError with words for a learner if they could not; ``clear_failure`` has them tried again.
    """
    result = _results()
    if isinstance(result, str):
        raise RuntimeError(result)
    return result


def clear_failure() -> bool:
    """Have the processes tried again if they could not run; return whether they are still to run."""
    if _results.cache_info().currsize and isinstance(_results(), str):
        _results.cache_clear()
    return not _results.cache_info().currsize


@cache
def _results() -> dict[LoopSettings, list[Any]] | str:
    """Run all loops in two processes; return what both have seen, or words for a learner if that failed.

    A failure is cached, too: each start may take minutes, and an instrument asks at every turn of a slider.
    """
    settings, (inputs, targets) = all_settings(), make_data()
    loops = [{"source": each.source, "updates": each.updates, "accumulate": each.accumulate} for each in settings]
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
            seen = [json.loads((folder / f"seen-{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)]
    except (OSError, RuntimeError, ValueError) as error:
        return f"Two processes could not be started here: {error}"
    return dict(zip(settings, (list(both) for both in zip(*seen, strict=True)), strict=True))


def whole_gradient(weights: Vector, first: int, accumulate: int) -> Vector:
    """Return the gradient of the mean loss over all samples of a window, which begins at micro-batch ``first``."""
    inputs, targets = (part[first : first + accumulate].flatten(0, 1) for part in make_data())
    w = torch.tensor([weights], requires_grad=True)
    (gradient,) = torch.autograd.grad(mse_loss(inputs @ w.T, targets), w)
    return gradient[0, 0].item(), gradient[0, 1].item()


@cache
def one_process(accumulate: int) -> tuple[Vector, ...]:
    """Return the weights of one process that gets all samples, from the start and after each update."""
    path: list[Vector] = [(0.0, 0.0)]
    for update in range(LoopSettings(accumulate).updates):
        (w1, w2), (g1, g2) = path[-1], whole_gradient(path[-1], update * accumulate, accumulate)
        path.append((w1 - LR * g1, w2 - LR * g2))
    return tuple(path)


@dataclass(frozen=True)
class RankMoment:
    """One rank at one moment."""

    grad: Vector | None
    """As the process saw it; None after ``zero_grad()``."""
    arrows: tuple[BatchArrow, ...]
    """What is in it: all of earlier updates as one arrow, then each of this one. They add up to ``grad``."""
    path: tuple[Vector, ...]
    """The weights, from the start to now."""


@dataclass(frozen=True)
class Moment:
    """Both ranks after one statement."""

    update: int
    """Counted from 1; 0 before the first statement."""
    statement: str
    """"start", "zero_grad", "backward", "all-reduce" or "step"."""
    micro: int
    """The micro-batch in its window, from 1; 0 outside."""
    ranks: tuple[RankMoment, RankMoment]
    messages: tuple[int, ...]
    """The bytes that each rank handed in, for every all-reduce so far."""
    sent: int
    """Of these, what went with this statement."""
    alone: tuple[Vector, ...]
    """The weights of one process with all samples, from the start to now."""
    whole: Vector
    """The gradient that one process with all samples of the window would have at the weights of rank 0."""

    @property
    def quiet(self) -> bool:
        """Whether no all-reduce was made where one could be, because the micro-batch is inside ``no_sync()``."""
        return self.statement == "all-reduce" and not self.sent

    @property
    def off(self) -> float:
        """How far ``.grad`` of rank 0 is from ``whole``, as a part of its length."""
        return math.dist(self.ranks[0].grad or (0.0, 0.0), self.whole) / math.hypot(*self.whole)

    @property
    def apart(self) -> float:
        """The distance between the weights of the two ranks."""
        return math.dist(self.ranks[0].path[-1], self.ranks[1].path[-1])


_Parts = dict[tuple[int, int], tuple[float, int]]
# What a .grad is made of: (micro-batch from 1 through all updates, rank) -> how much of that gradient, and how many
# steps have applied it.


def moments_of(settings: LoopSettings, seen: Sequence[Any]) -> list[Moment]:
    """Return the moments: the start, and one after each statement; ``seen`` is what both ranks saw of this loop.

    What is in ``.grad`` follows by two rules. ``backward()`` adds a rank's own gradient to its ``.grad``; an all-reduce
    replaces each ``.grad`` by the mean of both, which holds half of each rank's contributions. ``zero_grad()`` drops
    them.
    """
    window = settings.accumulate
    parts: list[_Parts] = [{}, {}]
    grads: list[Vector | None] = [None, None]
    paths: list[list[Vector]] = [[(0.0, 0.0)], [(0.0, 0.0)]]
    whole: Vector = (0.0, 0.0)
    own: dict[tuple[int, int], Vector] = {}
    messages: list[int] = []
    moments: list[Moment] = []
    first = 0

    def note(update: int, statement: str, micro: int = 0, sent: int = 0) -> None:
        zero, one = (
            RankMoment(grad, _arrows(parts[rank], own, grad, first), tuple(paths[rank]))
            for rank, grad in enumerate(grads)
        )
        alone = one_process(window)[: len(paths[0])]
        moments.append(Moment(update, statement, micro, (zero, one), tuple(messages), sent, alone, whole))

    note(0, "start")
    for update, both in enumerate(zip(*seen, strict=True), 1):
        first = (update - 1) * window
        whole = whole_gradient(paths[0][-1], first, window)
        for rank, saw in enumerate(both):
            grads[rank] = saw["cleared"] and tuple(saw["cleared"])
            parts[rank] = {} if saw["cleared"] is None else parts[rank]
        note(update, "zero_grad")
        for micro in range(window):
            for rank, saw in enumerate(both):
                origin = first + micro + 1, rank
                own[origin], parts[rank][origin] = tuple(saw["micros"][micro]["own"]), (1.0, 0)
                grads[rank] = tuple(saw["micros"][micro]["before"])
            note(update, "backward", micro + 1)
            sent = both[0]["micros"][micro]["sent"]
            messages += sent
            if sent:
                parts = [_mean(parts), _mean(parts)]
            grads = [tuple(saw["micros"][micro]["after"]) for saw in both]
            note(update, "all-reduce", micro + 1, sum(sent))
        for rank, saw in enumerate(both):
            paths[rank].append(tuple(saw["weights"]))
            parts[rank] = {origin: (share, times + 1) for origin, (share, times) in parts[rank].items()}
        note(update, "step")
    return moments


def _mean(parts: Sequence[_Parts]) -> _Parts:
    """Return half of each other's contributions."""
    pairs = {origin: [each.get(origin, (0.0, 0)) for each in parts] for origin in sorted({*parts[0], *parts[1]})}
    return {
        origin: (sum(share for share, _ in both) / 2, max(times for _, times in both)) for origin, both in pairs.items()
    }


def _arrows(
    parts: _Parts, own: Mapping[tuple[int, int], Vector], grad: Vector | None, earlier: int
) -> tuple[BatchArrow, ...]:
    """Return what is drawn head to tail: all micro-batches up to ``earlier`` as one arrow, then each contribution."""

    def arrow(first: int, last: int, vector: Any, applied: tuple[int, int], *names: str) -> BatchArrow:
        share = float(np.dot(vector, grad) / np.dot(grad, grad)) if grad and any(grad) else 0.0
        return BatchArrow((first, last), float(vector[0]), float(vector[1]), share, applied, names)

    vectors = {origin: np.multiply(share, own[origin]) for origin, (share, _) in parts.items()}
    old = {origin: times for origin, (_, times) in parts.items() if origin[0] <= earlier}
    arrows = []
    if old:
        micros, total = [micro for micro, _ in old], sum(vectors[origin] for origin in old)
        applied = min(old.values()), max(old.values())
        arrows.append(arrow(min(micros), max(micros), total, applied, "left over", "old"))
    for (micro, rank), (share, times) in parts.items():
        if micro > earlier:
            who = f"{_HALVES.get(share, f'{share:g} of ')}rank {rank}'s"
            names = f"{who} batch {micro}", who, f"rank {rank}"
            arrows.append(arrow(micro, micro, vectors[micro, rank], (times, times), *names))
    return tuple(arrows)
