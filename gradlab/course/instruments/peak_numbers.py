"""The numbers of the peak: the loop of some settings and the memory of one of its updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import groupby
from typing import Any

import torch

from ..._process import RandomStream, lock
from ...formatting import bytes_text
from ...loop import Program
from ...memory import Ledger, MemoryPoint

CLASSES = 10
"""Outputs of the model."""
BEFORE_FORWARD, BEFORE_BACKWARD, AFTER_STEP = "before forward", "before backward", "after step"
_OPTIMIZER = {
    "sgd": "torch.optim.SGD(model.parameters(), lr=0.01)",
    "adam": "torch.optim.Adam(model.parameters(), lr=0.001)",
}


@dataclass(frozen=True)
class PeakSettings:
    """A stack of layers and the way in which it is trained."""

    width: int = 64
    """Units of each hidden layer."""
    depth: int = 6
    """Hidden layers."""
    batch: int = 128
    """Rows of one micro-batch."""
    optimizer: str = "adam"
    set_to_none: bool = True
    place: str = BEFORE_FORWARD
    """Where ``zero_grad`` stands."""
    accumulate: int = 1
    """Micro-batches of one update."""


def peak_source(settings: PeakSettings) -> str:
    """Return the program that is measured: the text that is shown is the text that runs."""
    width, several = settings.width, settings.accumulate > 1
    batch = f"torch.randn({settings.batch}, {width}), torch.randint({CLASSES}, ({settings.batch},))"
    clear = f"optimizer.zero_grad(set_to_none={settings.set_to_none})"
    each = ["loss = cross_entropy(model(x), y)", f"{'(loss / len(batches))' if several else 'loss'}.backward()"]
    if settings.place == BEFORE_BACKWARD:  # once a window, with its first micro-batch
        each[1:1] = ["if number == 0:", f"    {clear}"] if several else [clear]
    if several:
        pairs = "number, (x, y) in enumerate(batches)" if settings.place == BEFORE_BACKWARD else "x, y in batches"
        each = [f"for {pairs}:", *(f"    {line}" for line in each)]
    before = [clear] * (settings.place == BEFORE_FORWARD)
    after = [clear] * (settings.place == AFTER_STEP)
    lines = [
        "import torch",
        "from torch import nn",
        "from torch.nn.functional import cross_entropy",
        "",
        f"layers = [layer for _ in range({settings.depth}) for layer in (nn.Linear({width}, {width}), nn.ReLU())]",
        f"model = nn.Sequential(*layers, nn.Linear({width}, {CLASSES}))",
        f"optimizer = {_OPTIMIZER[settings.optimizer]}",
        f"batches = [({batch}) for _ in range({settings.accumulate})]" if several else f"x, y = {batch}",
        "",
        "for update in range(2):  # the picture shows the second one",
        *(f"    {line}" for line in [*before, *each, "optimizer.step()", *after]),
    ]
    return "\n".join(lines) + "\n"


_PHASES = {"loss": "forward", "zero_grad": "zero_grad", "backward": "backward", "step": "step"}
"""The label of each statement of the loop, and the phase that it is; other statements move no bytes."""


@dataclass(frozen=True)
class Phase:
    """One call of the update, from the first to the last moment in it."""

    name: str
    """"zero_grad", "forward", "backward" or "step"."""
    moments: tuple[Mapping[str, int], ...]
    """Bytes by category; each stretch of work gives two moments, its highest and its end."""

    @property
    def highest(self) -> Mapping[str, int]:
        """The moment with the most bytes."""
        return max(self.moments, key=lambda moment: sum(moment.values()))


@dataclass(frozen=True)
class UpdateMemory:
    """The memory of one update."""

    settings: PeakSettings
    phases: tuple[Phase, ...]
    peak: int
    """Bytes."""
    at_peak: Mapping[str, int]
    """Bytes by category at that moment."""
    call: str
    """The phase in which it comes: ``backward()``."""
    where: str
    """The same with the module at work then: ``backward(), in module 11 (ReLU)``."""
    lines: tuple[int, int]
    """The first and the last line of the loop's text that ran then."""


@lru_cache(maxsize=1024)
def measure_peak(settings: PeakSettings) -> UpdateMemory:
    """Run the loop of these settings and return the memory of its second update, when the optimizer has its state."""
    program = Program(peak_source(settings))
    names: dict[str, Any] = {}
    with lock, RandomStream(0), _one_thread(), torch.enable_grad():
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
    statements = program.statements
    highest, module = statements[int(ledger.peak_at.statement)], ledger.peak_at.module
    phase = _PHASES[highest.label]
    points = [(_PHASES.get(statements[int(point.statement)].label, ""), point) for point in ledger.timeline[:-1]]
    kinds = {name: type(module).__name__ for name, module in names["model"].named_modules()}
    call = phase if phase == "forward" else f"{phase}()"
    where = f"{call}, in module {module} ({kinds[module]})" if module else call
    lines = (highest.line, highest.last_line)
    return UpdateMemory(settings, _phases(points), ledger.peak, ledger.at_peak, call, where, lines)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute on one thread: these models are so small that a second one would wait for the first."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _phases(points: list[tuple[str, MemoryPoint]]) -> tuple[Phase, ...]:
    """Put neighbouring stretches of work on one phase together."""
    return tuple(
        Phase(name, tuple(moment for _, point in stretch for moment in (point.high, point.bytes)))
        for name, stretch in groupby([each for each in points if each[0]], key=lambda each: each[0])
    )


def changes_text(settings: PeakSettings, start: PeakSettings) -> str:
    """Write each switch that differs from the start: ``batch 128 → 4, zero_grad → after step``."""
    changes = []
    for name in (each.name for each in fields(settings)):
        before, after = _value(getattr(start, name)), _value(getattr(settings, name))
        if before != after:
            changes.append(f"zero_grad → {after}" if name == "place" else f"{name} {before} → {after}")
    return ", ".join(changes)


def signed(size: int) -> str:
    """Write bytes with a sign: ``−72 KiB``, ``+4.1 KiB``, ``0 B``."""
    return f"+{bytes_text(size)}" if size > 0 else bytes_text(size)


def _value(value: Any) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)
