"""The numbers of the peak: the loop of some settings, the memory of one of its updates, and what each switch moved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import groupby
from typing import Any

import torch
from torch import nn

from ..._process import RandomStream, lock
from ...formatting import bytes_text
from ...loop import Program
from ...memory import Ledger, MemoryPoint

CLASSES = 10
"""Outputs of the model."""
BEFORE_FORWARD, BEFORE_BACKWARD, AFTER_STEP = "before forward", "before backward", "after step"
_OPTIMIZER = {
    "sgd": "torch.optim.SGD(model.parameters(), lr=0.01)",
    "momentum": "torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)",
    "adam": "torch.optim.Adam(model.parameters(), lr=0.001)",
}
_DTYPE = {"bf16": "torch.bfloat16", "fp16": "torch.float16"}
_INDENT = "    "


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
    amp: str = "off"
    checkpoint: bool = False

    def put_back(self, name: str, start: PeakSettings) -> PeakSettings:
        """Return a copy in which one setting is what it was at the start."""
        change: dict[str, Any] = {name: getattr(start, name)}
        return replace(self, **change)

    def changed_from(self, start: PeakSettings) -> list[str]:
        """Return the names of the settings that differ from the start."""
        return [each.name for each in fields(self) if getattr(self, each.name) != getattr(start, each.name)]

    @property
    def segments(self) -> int:
        """Into how many segments checkpointing cuts the model: about the square root of the number of its modules."""
        return max(2, round(math.sqrt(2 * self.depth + 1)))


def peak_source(settings: PeakSettings) -> str:
    """Return the program that is measured: the text that is shown is the text that runs."""
    return "\n".join([*_imports(settings), "", *_setup(settings), "", *_updates(settings)]) + "\n"


def _imports(settings: PeakSettings) -> list[str]:
    lines = ["import torch", "from torch import nn", "from torch.nn.functional import cross_entropy"]
    return [*lines, *["from torch.utils.checkpoint import checkpoint_sequential"] * settings.checkpoint]


def _setup(settings: PeakSettings) -> list[str]:
    width, several = settings.width, settings.accumulate > 1
    batch = f"torch.randn({settings.batch}, {width}), torch.randint({CLASSES}, ({settings.batch},))"
    lines = [
        f"layers = [layer for _ in range({settings.depth}) for layer in (nn.Linear({width}, {width}), nn.ReLU())]",
        f"model = nn.Sequential(*layers, nn.Linear({width}, {CLASSES}))",
        f"optimizer = {_OPTIMIZER[settings.optimizer]}",
    ]
    if settings.amp == "fp16":
        lines.append('scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)')
    lines.append(f"batches = [({batch}) for _ in range({settings.accumulate})]" if several else f"x, y = {batch}")
    return lines


def _updates(settings: PeakSettings) -> list[str]:
    several, fp16 = settings.accumulate > 1, settings.amp == "fp16"
    clear = [f"optimizer.zero_grad(set_to_none={settings.set_to_none})"]
    late = settings.place == BEFORE_BACKWARD
    loss = "loss / len(batches)" if several else "loss"
    scaled = f"scaler.scale({loss})" if fp16 else f"({loss})" if several else "loss"
    step = ["scaler.step(optimizer)", "scaler.update()"] if fp16 else ["optimizer.step()"]
    each = [*_forward(settings), *(_at_first(clear) if late and several else clear * late), f"{scaled}.backward()"]
    if several:
        head = "for number, (x, y) in enumerate(batches):" if late else "for x, y in batches:"
        each = [head, *_indented(each)]
    body = [
        *(clear if settings.place == BEFORE_FORWARD else []),
        *each,
        *step,
        *(clear if settings.place == AFTER_STEP else []),
    ]
    return ["for update in range(2):  # the picture shows the second one", *_indented(body)]


def _forward(settings: PeakSettings) -> list[str]:
    lines = ["loss = cross_entropy(model(x), y)"]
    if settings.checkpoint:
        how = "use_reentrant=False, preserve_rng_state=False"
        output = f"checkpoint_sequential(model, {settings.segments}, x, {how})"
        lines = ["loss = cross_entropy(", f"{_INDENT}{output}, y", ")"]
    if settings.amp == "off":
        return lines
    return [f'with torch.autocast("cpu", dtype={_DTYPE[settings.amp]}):', *_indented(lines)]


def _at_first(clear: list[str]) -> list[str]:
    """Return lines that clear once a window, with its first micro-batch."""
    return ["if number == 0:", *_indented(clear)]


def _indented(lines: list[str]) -> list[str]:
    return [_INDENT + line for line in lines]


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
class UpdateMemory:
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
    return _update_memory(settings, program, names["model"], ledger)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute on one thread: these models are so small that a second one would wait for the first."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _update_memory(settings: PeakSettings, program: Program, model: nn.Module, ledger: Ledger) -> UpdateMemory:
    at, statements = ledger.peak_at, program.statements
    statement = statements[int(at.statement)]
    points = [(PHASES.get(statements[int(point.statement)].label), point) for point in ledger.timeline[:-1]]
    return UpdateMemory(
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


_NAMES = {"set_to_none": "set_to_none", "place": "zero_grad", "amp": "AMP", "checkpoint": "checkpointing"}


@dataclass(frozen=True)
class Effect:
    """One switch that differs from the start."""

    name: str
    """Of the setting."""
    words: str
    """``AMP off → bf16``."""
    moved: int
    """Bytes by which the peak is higher than with this one switch put back; negative where it is lower."""

    @property
    def text(self) -> str:
        """The effect in words: ``AMP off → bf16: −72 KiB``."""
        return f"{self.words}: {signed(self.moved)}"


def effects(
    settings: PeakSettings, start: PeakSettings, measure: Callable[[PeakSettings], UpdateMemory]
) -> list[Effect]:
    """Measure what each changed switch does to the peak while the others stay, the largest effect first."""
    peak = measure(settings).peak
    found = []
    for name in settings.changed_from(start):
        before, after = getattr(start, name), getattr(settings, name)
        words = f"{_NAMES.get(name, name)} {'' if name == 'place' else f'{_value(before)} '}\u2192 {_value(after)}"
        found.append(Effect(name, words, peak - measure(settings.put_back(name, start)).peak))
    return sorted(found, key=lambda effect: -abs(effect.moved))


def signed(size: int) -> str:
    """Write bytes with a sign: ``−72 KiB``, ``+4.1 KiB``, ``0 B``."""
    return f"+{bytes_text(size)}" if size > 0 else bytes_text(size)


def _value(value: Any) -> str:
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
