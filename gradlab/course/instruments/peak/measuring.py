"""One update's memory, measured: the loop's own text runs on real tensors, its second update under a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import torch
from torch import nn

from ...._process import lock, preserving_rng
from ....loop import Program
from ....memory import Ledger, MemoryPoint
from .settings import PeakSettings, peak_source

PHASES = {
    "loss": "forward",
    "autocast": "forward",
    "zero_grad": "zero_grad",
    "backward": "backward",
    "step": "step",
    "update": "step",
}
"""What each statement of the loop is part of, by its label; other statements move no bytes."""


@dataclass(frozen=True)
class Phase:
    """One call of the update, from the first to the last moment in it."""

    name: str
    """"zero_grad", "forward", "backward" or "step"."""
    moments: tuple[Mapping[str, int], ...]
    """Bytes by category; each stretch of work gives two moments, its highest and its end."""

    @property
    def top(self) -> int:
        """The most bytes at one moment."""
        return max(sum(moment.values()) for moment in self.moments)


@dataclass(frozen=True)
class Mountain:
    """The memory of one update."""

    settings: PeakSettings
    phases: tuple[Phase, ...]
    peak: int
    """Bytes."""
    at_peak: Mapping[str, int]
    """Bytes by category at that moment."""
    phase: str
    """The phase in which it comes."""
    module: str
    """The module at work then: ``"module 11 (ReLU)"``, and "" outside of any."""
    lines: tuple[int, int]
    """The first and the last line of the loop's text that ran then."""

    @property
    def where(self) -> str:
        """The place of the peak in words: ``backward(), in module 11 (ReLU)``."""
        return f"{self.call}, in {self.module}" if self.module else self.call

    @property
    def call(self) -> str:
        """The phase of the peak as it is called: ``backward()``."""
        return self.phase if self.phase == "forward" else f"{self.phase}()"


@lru_cache(maxsize=1024)
def measure_peak(settings: PeakSettings) -> Mountain:
    """Run the loop of these settings and return the memory of its second update, when the optimizer has its state."""
    program = Program(peak_source(settings))
    names: dict[str, Any] = {}
    with lock, preserving_rng(), _one_thread(), torch.enable_grad():
        torch.manual_seed(0)
        for _ in program.setup(names):
            pass
        updates = program.loop(names)
        head = next(updates)
        for statement in updates:
            if statement == head:  # the head of the loop again: the first update is over
                break
        inputs = names.get("batches") or (names["x"], names["y"])
        with Ledger(names["model"], [names["optimizer"]], inputs) as ledger:
            ledger.place = lambda: ""  # statements are named as they end
            for statement in updates:
                ledger.mark(str(statement))
    return _mountain(settings, program, names["model"], ledger)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute on one thread: these models are so small that a second one would wait for the first."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _mountain(settings: PeakSettings, program: Program, model: nn.Module, ledger: Ledger) -> Mountain:
    at, statements = ledger.peak_at, program.statements
    statement = statements[int(at.statement)]
    points = [(PHASES.get(statements[int(point.statement)].label), point) for point in ledger.timeline[:-1]]
    return Mountain(
        settings,
        tuple(_phases([(name, point) for name, point in points if name])),
        ledger.peak,
        ledger.at_peak,
        PHASES[statement.label],
        _module(model, at.module),
        (statement.line, statement.last_line),
    )


def _module(model: nn.Module, name: str) -> str:
    kinds = {name: type(module).__name__ for name, module in model.named_modules()}
    if not name or name in kinds:
        return name and f"module {name} ({kinds[name]})"
    return f"a {name}"  # checkpointing calls modules by themselves, so that they have no name but their class


def _phases(points: list[tuple[str, MemoryPoint]]) -> list[Phase]:
    """Put neighbouring stretches of work on one phase together."""
    return [
        Phase(name, tuple(moment for _, point in stretch for moment in (point.high, point.bytes)))
        for name, stretch in groupby(points, key=lambda point: point[0])
    ]
