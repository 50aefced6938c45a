"""The numbers of two ranks: the loops, run in two real processes, and every moment of them."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import mse_loss

from ...gradients import Span
from ...scenes import Arrow
from ..processes import launch

MOMENTS = 24
"""Statements that are stepped through: 6 updates of 4, 4 updates of 6 or 3 updates of 8."""
SAMPLES_EACH = 16
"""Of a micro-batch, both ranks together."""
LR = 0.15
ACCUMULATE = (1, 2, 3)
NO_SYNC = ("off", "all but the last", "all but the first")
FORGETS = ("none", "rank 1", "both")
BATCHES = ("8 and 8", "12 and 4", "12 and 4, weighted")


@dataclass(frozen=True)
class LoopSettings:
    """What the loop of both ranks is made of; each field has one of the values listed above."""

    accumulate: int = 1
    no_sync: str = "off"
    """Which micro-batches of a window are inside ``no_sync()``."""
    forgets: str = "none"
    """Which ranks never call ``zero_grad()``."""
    batches: str = "8 and 8"

    @property
    def updates(self) -> int:
        """Updates in all; one is zero_grad, a backward and an all-reduce for each micro-batch, and step."""
        return MOMENTS // (2 + 2 * self.accumulate)

    @property
    def split(self) -> tuple[int, int]:
        """Samples of a micro-batch in rank 0 and in rank 1."""
        return (8, 8) if self.batches == "8 and 8" else (12, 4)

    def clears(self, rank: int) -> bool:
        """Whether this rank calls ``zero_grad()``."""
        return self.forgets == "none" or (self.forgets == "rank 1" and rank == 0)

    @property
    def source(self) -> str:
        """The loop, in plain PyTorch; ``windows`` holds this rank's share of every micro-batch."""
        clear = {
            "none": ["    optimizer.zero_grad()"],
            "rank 1": ["    if rank == 0:  # rank 1 forgets", "        optimizer.zero_grad()"],
            "both": ["    # optimizer.zero_grad() is forgotten"],
        }[self.forgets]
        window = self.accumulate > 1
        loss = ["loss = mse_loss(model(x), y)"]
        if self.batches == "12 and 4, weighted":
            loss.append(f"loss = loss * len(x) * 2 / {SAMPLES_EACH}  # 2 ranks, {SAMPLES_EACH} samples")
        if window:
            loss.append(f"loss = loss / {self.accumulate}")
        loss.append("loss.backward()")
        counted = window and self.no_sync != "off"
        quiet = f"i < {self.accumulate - 1}" if self.no_sync == "all but the last" else "i > 0"
        within = [f"with model.no_sync() if {quiet} else nullcontext():"] if counted else []
        body = [*within, *(f"{'    ' * counted}{line}" for line in loss)]
        return "\n".join(
            [
                "model = DDP(model)",
                f"optimizer = torch.optim.SGD(model.parameters(), lr={LR})",
                "for window in windows:",
                *clear,
                "    for i, (x, y) in enumerate(window):" if counted else "    for x, y in window:",
                *(f"        {line}" for line in body),
                "    optimizer.step()",
            ]
        )

    def lines(self, statement: str) -> tuple[int, int]:
        """Return the first and the last line of the text that belong to a statement; (0, 0) before the first."""
        lines = self.source.splitlines()
        found = {"zero_grad": "zero_grad", "backward": "backward", "all-reduce": "backward", "step": "step()"}
        word = found.get(statement)
        at = [number for number, line in enumerate(lines, 1) if word and word in line]
        return (at[0], at[0]) if at else (0, 0)


def all_settings() -> Iterator[LoopSettings]:
    """Yield every combination that differs in what it does."""
    for accumulate, no_sync, forgets, batches in product(ACCUMULATE, NO_SYNC, FORGETS, BATCHES):
        if accumulate > 1 or no_sync == "off":
            yield LoopSettings(accumulate, no_sync, forgets, batches)


Vector = tuple[float, float]
IN_ALL = 9
"""As many as the longest loop needs: three windows of three."""
_SECONDS = 60.0
_HALVES = {1.0: "", 0.5: "\u00bd of "}


class CannotStartError(RuntimeError):
    """The processes could not be run here; the message says why, for a learner."""


@cache
def make_data() -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs (micro-batches x samples x 2) and targets (micro-batches x samples x 1).

    The samples of a micro-batch have different answers: the first are best described by the weights (2.4, -0.4), the
    last by (0.6, 2.2). So the ranks disagree, as ranks do, and what each wants alone is not what both want together.
    """
    generator = torch.Generator().manual_seed(0)
    turns = torch.rand(IN_ALL, 1, generator=generator) + torch.arange(SAMPLES_EACH) * 0.375
    sizes = 1.0 + 0.6 * torch.rand(IN_ALL, SAMPLES_EACH, generator=generator)
    inputs = torch.stack([sizes * (math.pi * turns).cos(), sizes * (math.pi * turns).sin()], dim=-1)
    along = torch.linspace(0.0, 1.0, SAMPLES_EACH).unsqueeze(-1)
    wanted = torch.tensor([2.4, -0.4]) * (1 - along) + torch.tensor([0.6, 2.2]) * along
    noise = 0.4 * torch.randn(IN_ALL, SAMPLES_EACH, generator=generator)
    return inputs, ((inputs * wanted).sum(-1) + noise).unsqueeze(-1)


def run_ranks() -> dict[LoopSettings, list[Any]]:
    """Return what both processes have seen of each loop, as ``two_ranks_script.py`` says; they run once.

    Raises CannotStartError with words for a learner if they could not; ``clear_failure`` has them tried again.
    """
    result = _results()
    if isinstance(result, str):
        raise CannotStartError(result)
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
    settings = list(all_settings())
    inputs, targets = make_data()
    loops = [
        {"source": each.source, "updates": each.updates, "accumulate": each.accumulate, "split": each.split}
        for each in settings
    ]
    try:
        with tempfile.TemporaryDirectory(prefix="gradlab-ranks-", ignore_cleanup_errors=True) as folder:
            place = Path(folder)
            text = files(__package__).joinpath("two_ranks_script.py").read_text(encoding="utf-8")
            (place / "rank.py").write_text(text, encoding="utf-8")
            given = {"inputs": inputs.tolist(), "targets": targets.tolist(), "loops": loops}
            (place / "loops.json").write_text(json.dumps(given), encoding="utf-8")
            result = launch(place / "rank.py", processes=2, seconds=_SECONDS)
            if not result:
                return result.error
            seen = [json.loads((place / f"seen-{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)]
    except (OSError, RuntimeError, ValueError) as error:
        return f"Two processes could not be started here: {error}"
    return {each: [loops[at] for loops in seen] for at, each in enumerate(settings)}


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


@cache
def best_weights() -> Vector:
    """Return the weights with the least loss over all micro-batches."""
    inputs, targets = (part.flatten(0, 1) for part in make_data())
    best = torch.linalg.lstsq(inputs, targets).solution.flatten()
    return best[0].item(), best[1].item()


@dataclass(frozen=True)
class RankMoment:
    """One rank at one moment."""

    grad: Vector | None
    """As the process saw it; None after ``zero_grad()``."""
    arrows: tuple[Arrow, ...]
    """What is in it: all that is stale as one arrow, then each fresh contribution. They add up to ``grad``."""
    path: tuple[Vector, ...]
    """The weights, from the start to now."""
    whole: Vector
    """The gradient that one process with all samples of the window would have at the weights of this update."""

    @property
    def off(self) -> float:
        """How far ``.grad`` is from ``whole``, as a part of its length."""
        return math.dist(self.grad or (0.0, 0.0), self.whole) / math.hypot(*self.whole)


@dataclass(frozen=True)
class Moment:
    """Both ranks after one statement."""

    number: int
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
    complete: bool
    """Whether the last micro-batch of the window is in: now ``.grad`` should be what one process would have."""
    alone: tuple[Vector, ...]
    """The weights of one process with all samples, from the start to now."""

    @property
    def quiet(self) -> bool:
        """Whether no all-reduce was made where one could be, because the micro-batch is inside ``no_sync()``."""
        return self.statement == "all-reduce" and not self.sent

    @property
    def apart(self) -> float:
        """The distance between the weights of the two ranks."""
        return math.dist(self.ranks[0].path[-1], self.ranks[1].path[-1])


_Held = dict[tuple[int, int], tuple[float, bool]]
# What a .grad is made of: (micro-batch from 1 through all updates, rank) -> how much of that gradient, and whether a
# step has used it.


def moments_of(settings: LoopSettings, seen: Sequence[Any]) -> list[Moment]:
    """Return the moments: the start, and one after each statement; ``seen`` is what both ranks saw of this loop.

    What is in ``.grad`` follows by two rules. ``backward()`` adds a rank's own gradient to its ``.grad``; an all-reduce
    replaces each ``.grad`` by the mean of both, which holds half of each rank's contributions. ``zero_grad()`` drops
    them; what a step has used and the next update still holds is stale.
    """
    window = settings.accumulate
    held: list[_Held] = [{}, {}]
    grads: list[Vector | None] = [None, None]
    paths: list[list[Vector]] = [[(0.0, 0.0)], [(0.0, 0.0)]]
    wholes: list[Vector] = [(0.0, 0.0), (0.0, 0.0)]
    own: dict[tuple[int, int], Vector] = {}
    messages: list[int] = []
    found: list[Moment] = []

    def note(update: int, statement: str, micro: int = 0, sent: int = 0) -> None:
        zero, one = (
            RankMoment(grad, _arrows(held[rank], own, grad), tuple(paths[rank]), wholes[rank])
            for rank, grad in enumerate(grads)
        )
        complete = statement == "step" or (statement == "all-reduce" and micro == window)
        alone = one_process(window)[: len(paths[0])]
        found.append(Moment(len(found), update, statement, micro, (zero, one), tuple(messages), sent, complete, alone))

    note(0, "start")
    for update, both in enumerate(zip(*seen, strict=True), 1):
        first = (update - 1) * window
        for rank, saw in enumerate(both):
            wholes[rank] = whole_gradient(paths[rank][-1], first, window)
            grads[rank] = saw["cleared"] and _vector(saw["cleared"])
            left = {} if saw["cleared"] is None else held[rank]
            held[rank] = {origin: (share, True) for origin, (share, _) in left.items()}
        note(update, "zero_grad")
        for micro in range(window):
            for rank, saw in enumerate(both):
                origin = first + micro + 1, rank
                own[origin], held[rank][origin] = _vector(saw["micros"][micro]["own"]), (1.0, False)
                grads[rank] = _vector(saw["micros"][micro]["before"])
            note(update, "backward", micro + 1)
            sent = both[0]["micros"][micro]["sent"]
            messages += sent
            if sent:
                held = [_mean(held), _mean(held)]
            grads = [_vector(saw["micros"][micro]["after"]) for saw in both]
            note(update, "all-reduce", micro + 1, sum(sent))
        for rank, saw in enumerate(both):
            paths[rank].append(_vector(saw["weights"]))
        note(update, "step")
    return found


def _mean(held: Sequence[_Held]) -> _Held:
    """Return half of each other's contributions; what is stale in one rank is stale in both."""
    parts = {origin: [each.get(origin, (0.0, False)) for each in held] for origin in sorted({*held[0], *held[1]})}
    return {
        origin: (sum(share for share, _ in both) / 2, any(stale for _, stale in both)) for origin, both in parts.items()
    }


def _arrows(held: _Held, own: Mapping[tuple[int, int], Vector], grad: Vector | None) -> tuple[Arrow, ...]:
    """Return what is drawn head to tail: what is stale as one arrow, then each fresh contribution."""
    parts = [(origin, share, np.multiply(share, own[origin]), stale) for origin, (share, stale) in held.items()]
    old = [(micro, vector) for (micro, _), _, vector, stale in parts if stale]
    found = []
    if old:
        span = min(micro for micro, _ in old), max(micro for micro, _ in old)
        found.append(_arrow(span, sum(vector for _, vector in old), grad, ("left over", "old"), stale=True))
    for (micro, rank), share, vector, stale in parts:
        if not stale:
            who = f"{_HALVES.get(share, f'{share:g} of ')}rank {rank}'s"
            found.append(_arrow((micro, micro), vector, grad, (f"{who} batch {micro}", who, f"rank {rank}")))
    return tuple(found)


def _arrow(batches: Span, vector: Any, grad: Vector | None, names: Sequence[str], *, stale: bool = False) -> Arrow:
    share = float(np.dot(vector, grad) / np.dot(grad, grad)) if grad and any(grad) else 0.0
    return Arrow(batches, float(vector[0]), float(vector[1]), share, stale, names=names)


def _vector(numbers: Sequence[float]) -> Vector:
    first, second = numbers
    return first, second
