"""One update's memory, measured: the loop's own text runs on real tensors, its second update under a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint_sequential

from ...._process import lock, preserving_rng
from ....loop import Program
from ....memory import CATEGORIES, Ledger, MemoryPoint
from .settings import PeakSettings, loop_text

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

    @property
    def where(self) -> str:
        """The place of the peak in words: ``backward(), in module 11 (ReLU)``."""
        return f"{self.call}, in {self.module}" if self.module else self.call

    @property
    def call(self) -> str:
        """The phase of the peak as it is called: ``backward()``."""
        return self.phase if self.phase == "forward" else f"{self.phase}()"


def measure(settings: PeakSettings) -> Mountain:
    """Run the loop of these settings and return the memory of its second update, when the optimizer has its state."""
    program = Program(loop_text(settings))
    names: dict[str, Any] = {
        "torch": torch,
        "nn": nn,
        "cross_entropy": cross_entropy,
        "checkpoint_sequential": checkpoint_sequential,
    }
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
                ledger.mark(program.statements[statement].label)
    return _mountain(settings, names["model"], ledger)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute on one thread: these models are so small that a second one would wait for the first."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _mountain(settings: PeakSettings, model: nn.Module, ledger: Ledger) -> Mountain:
    points = [point for point in ledger.timeline if point.statement in PHASES]
    at = ledger.peak_at
    return Mountain(
        settings,
        tuple(_phases(points)),
        ledger.peak,
        ledger.at_peak,
        PHASES[at.statement],
        _module(model, at.module),
    )


def _module(model: nn.Module, name: str) -> str:
    kinds = {name: type(module).__name__ for name, module in model.named_modules()}
    if not name or name in kinds:
        return name and f"module {name} ({kinds[name]})"
    return f"a {name}"  # checkpointing calls modules by themselves, so that they have no name but their class


def _phases(points: list[MemoryPoint]) -> list[Phase]:
    """Put neighbouring stretches of work on one phase together."""
    phases: list[Phase] = []
    for point in points:
        name, moments = PHASES[point.statement], (_known(point.high), _known(point.bytes))
        if phases and phases[-1].name == name:
            moments, name = (*phases.pop().moments, *moments), name
        phases.append(Phase(name, moments))
    return phases


def _known(sizes: Mapping[str, int]) -> dict[str, int]:
    return {name: sizes[name] for name in CATEGORIES}
