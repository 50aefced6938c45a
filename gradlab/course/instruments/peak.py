"""The peak instrument: memory over time during one update, the parts of the peak, and how settings change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import groupby, pairwise, product
from typing import Any

import numpy as np
import torch
from torch import nn

from ... import _torch
from ..._process import RandomStream, lock
from ...drawing import (
    AXES_EDGE,
    Area,
    Axes,
    Axis,
    AxisSpan,
    Band,
    Dots,
    Drawing,
    Line,
    Mark,
    Placed,
    Text,
    area_style,
    from_zero,
    in_rows,
    stacked,
    text_role,
)
from ...formatting import bytes_text
from ...loop import Program
from ...memory import CATEGORIES, Ledger
from ...widgets import Control, Instrument, View

CLASSES = 10  # number of classes that the model predicts
_PLACES = BEFORE_FORWARD, BEFORE_BACKWARD, AFTER_STEP = "before forward", "before backward", "after step"
_OPTIMIZER = {
    "sgd": "torch.optim.SGD(model.parameters(), lr=0.01)",
    "adam": "torch.optim.Adam(model.parameters(), lr=0.001)",
}


@dataclass(frozen=True)
class PeakSettings:
    """The size of a stack of layers and the settings of its training loop."""

    width: int = 64  # number of units in each hidden layer
    depth: int = 6  # number of hidden layers
    batch: int = 128  # number of rows in a micro-batch
    optimizer: str = "adam"
    set_to_none: bool = True
    place: str = BEFORE_FORWARD  # position of ``zero_grad`` in the loop
    accumulate: int = 1  # number of micro-batches in an update


def peak_source(settings: PeakSettings) -> str:
    """Return the source code of the training program for ``settings``, which the instrument measures and shows."""
    width, several = settings.width, settings.accumulate > 1
    batch = f"torch.randn({settings.batch}, {width}), torch.randint({CLASSES}, ({settings.batch},))"
    clear = f"optimizer.zero_grad(set_to_none={settings.set_to_none})"
    each = ["loss = cross_entropy(model(x), y)", f"{'(loss / len(batches))' if several else 'loss'}.backward()"]
    if settings.place == BEFORE_BACKWARD:  # if there are several micro-batches, only the first clears .grad
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
"""Label of a statement -> phase; other statements allocate no bytes."""


@dataclass(frozen=True)
class Phase:
    """The memory in use during one call of an update, such as ``backward()``."""

    name: str  # "zero_grad", "forward", "backward" or "step"
    moments: tuple[Mapping[str, int], ...]
    """Bytes by category at two moments of each of the ledger's intervals: at the highest total and at the end."""

    @property
    def highest(self) -> Mapping[str, int]:
        """The bytes by category at the moment of this phase with the highest total."""
        return max(self.moments, key=lambda moment: sum(moment.values()))


@dataclass(frozen=True)
class UpdateMemory:
    """The memory in use during one update, for each phase and at the peak."""

    settings: PeakSettings
    phases: tuple[Phase, ...]
    peak: int  # highest total number of bytes
    at_peak: Mapping[str, int]  # bytes by category at the peak
    call: str  # call in which the peak occurs, such as ``backward()``
    where: str  # ``call`` and, if known, the module of the peak, such as ``backward(), in module 11 (ReLU)``
    lines: tuple[int, int]  # first and last line of the statement at the peak; ``measure_update`` sets (1, 1)


@lru_cache(maxsize=1024)
def measure_peak(settings: PeakSettings) -> UpdateMemory:
    """Run the loop of ``settings`` and return the memory of its second update, when the optimizer already has state."""
    program = Program(peak_source(settings))
    names: dict[str, Any] = {}
    with lock, RandomStream(0), torch.enable_grad(), ExitStack() as after:
        after.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)  # more threads do not make models of this size faster
        list(program.setup(names))
        updates = program.loop(names)
        head = next(updates)
        next(statement for statement in updates if statement == head)  # runs the first update
        inputs = names.get("batches") or (names["x"], names["y"])
        with Ledger(names["model"], [names["optimizer"]], inputs) as ledger:
            ledger.current_statement = lambda: ""  # ``ledger.mark`` names each statement after it has run
            for statement in updates:
                ledger.mark(str(statement))
    statements = program.statements
    highest = statements[int(ledger.peak_at.statement)]
    lines = highest.line, highest.last_line
    return _update_memory(settings, ledger, names["model"], lambda i: _PHASES.get(statements[int(i)].label, ""), lines)


def measure_update(update: Callable[..., Any], settings: PeakSettings) -> tuple[UpdateMemory, nn.Module]:
    """Call ``update(model, optimizer, x, y)`` twice; return the memory of the second call, and the trained model."""
    names: dict[str, Any] = {}
    called = [""]

    def labelled(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            called.append(name)
            torch.empty(0)  # any operation makes the ledger record that this phase has begun
            return call(*args, **kwargs)

        return run

    with lock, RandomStream(0), torch.enable_grad():
        list(Program(peak_source(settings)).setup(names))
        model, optimizer, x, y = (names[name] for name in ("model", "optimizer", "x", "y"))
        update(model, optimizer, x, y)
        for owner in (model, optimizer):
            owner.zero_grad = labelled("zero_grad", owner.zero_grad)
        model.forward, optimizer.step = labelled("forward", model.forward), labelled("step", optimizer.step)
        with Ledger(model, [optimizer], (x, y)) as ledger:
            ledger.current_statement = lambda: called[-1] if _torch.current_autograd_node() is None else "backward"
            update(model, optimizer, x, y)
            labelled("", torch.empty)(0)  # ends the last phase
    return _update_memory(settings, ledger, model, str, (1, 1)), model


def _update_memory(
    settings: PeakSettings, ledger: Ledger, model: nn.Module, phase_of: Callable[[str], str], lines: tuple[int, int]
) -> UpdateMemory:
    """Return the UpdateMemory from a ledger; ``phase_of`` maps a statement to its phase, or to "" if it has none."""
    stretches = groupby(ledger.timeline[:-1], lambda point: phase_of(point.statement))
    phases = [
        Phase(name, tuple(m for point in work for m in (point.high, point.bytes))) for name, work in stretches if name
    ]
    highest, module = phase_of(ledger.peak_at.statement), ledger.peak_at.module
    kinds = {name: type(module).__name__ for name, module in model.named_modules()}
    call = "forward" if highest == "forward" else f"{highest}()"
    where = f"{call}, in module {module} ({kinds[module]})" if module else call
    return UpdateMemory(settings, tuple(phases), ledger.peak, ledger.at_peak, call, where, lines)


def changes_text(settings: PeakSettings, start: PeakSettings) -> str:
    """Return the changes from ``start`` to ``settings`` as text, such as ``batch 128 → 4, zero_grad → after step``."""
    changes = []
    for name, after in asdict(settings).items():
        if (before := getattr(start, name)) != after:
            switched = f"set_to_none {'off → on' if after else 'on → off'}"
            phrases = {"place": f"zero_grad → {after}", "set_to_none": switched}
            changes.append(phrases.get(name, f"{name} {before} → {after}"))
    return ", ".join(changes)


_START = PeakSettings()


class Peak(Instrument):
    """The memory of one update of a stack of layers, measured by running the training loop.

    The controls ``width`` and ``depth`` set the model's size. The controls ``batch`` (rows in a micro-batch),
    ``accumulate``, ``optimizer``, ``place`` (of ``zero_grad()``) and ``set_to_none`` set the training loop. Keyword
    arguments set the controls' start values, and every later update is compared with an update at the start values.
    """

    title = "The peak"

    def controls(self) -> list[Control]:
        """Return the controls for the model's size, then those for the training loop."""
        return [
            Control.slider("width", "width", _START.width, [16, 32, 64, 128]),
            Control.slider("depth", "depth", _START.depth, [1, 2, 4, 6, 8]),
            Control.slider("batch", "batch", _START.batch, [2**power for power in range(10)]),
            Control.slider("accumulate", "accumulate", _START.accumulate, [1, 2, 4]),
            Control.choice("optimizer", "optimizer", _START.optimizer, ["sgd", "adam"]),
            Control.choice("place", "zero_grad", _START.place, _PLACES),
            Control.tick("set_to_none", "set_to_none", _START.set_to_none),
        ]

    def render(self, values: Mapping[str, Any]) -> View:
        """Return a View of the memory measured at ``values``, compared with the memory at the start values."""
        settings, first = PeakSettings(**values), self._first
        now, start = measure_peak(settings), measure_peak(first)
        state, note = _peak_text(now), ""
        if settings != first:
            more = now.peak - start.peak
            compared = f"{bytes_text(abs(more))} {'higher' if more > 0 else 'lower'}" if more else "the same"
            state += f" Compared with the start ({changes_text(settings, first)}), the peak is {compared}."
            note = "The dashed outline is the update with the settings at the start."
        return View({"memory": draw_update_memory(now, start)}, state, note, code=peak_source(settings), lit=now.lines)

    def _still(self, view: View) -> list[Placed]:
        if not view.code:  # nothing could be measured
            return super()._still(view)
        before = set(peak_source(self._first).splitlines())
        changed = [number for number, line in enumerate(view.code.splitlines(), 1) if line not in before]
        loop = self._listing(view, changed)
        return in_rows([*view.panels.values()], 1, (self.size[0], max(self.size[1], loop.height)), beside=loop)

    @property
    def _first(self) -> PeakSettings:
        return PeakSettings(**{name: control.start for name, control in self._controls.items()})

    @property
    def at_peak(self) -> Mapping[str, int]:
        """The number of bytes in each category at the peak, measured at the controls' current values."""
        return measure_peak(PeakSettings(**self.values)).at_peak

    def recorded(self) -> Iterable[Mapping[str, Any]]:
        """Yield settings: each value of each control, and all uses of zero_grad with two optimizers and batch sizes."""
        yield from super().recorded()
        for optimizer, position, clear, batch in product(("sgd", "adam"), _PLACES, (True, False), (4, 128)):
            yield {"optimizer": optimizer, "place": position, "set_to_none": clear, "batch": batch}


def peak(**start: Any) -> Peak:
    """Return a Peak whose controls start at the given values, as in ``peak(optimizer="sgd", batch=8)``."""
    return Peak(**start)


_SHARES = {"zero_grad": 4.0, "forward": 6.0, "backward": 7.0, "step": 4.0}
"""Phase -> relative width. Several forward passes of a window share the width of one; so do backward passes."""
_SHORT = {"zero_grad": "zero", "forward": "fwd", "backward": "bwd"}
_BAR = 1.02, 1.06  # the left and the right edge of the peak's bar, in units of the update's width


def draw_update_memory(now: UpdateMemory, start: UpdateMemory) -> Drawing:
    """Draw the memory of ``now`` by category with the peak, and the outline of ``start`` unless it equals ``now``."""
    peak, before = bytes_text(now.peak), f"{bytes_text(start.peak)}, in {start.where}"
    changed = start != now
    outlined = "with zeros" if replace(now.settings, set_to_none=False) == start.settings else "at the start"
    top = from_zero(max(now.peak, start.peak) * 1.06)
    ends = _phase_ends(now.phases)
    marks: list[Mark] = []
    for number, (phase, (a, b)) in enumerate(zip(now.phases, pairwise(ends), strict=True)):
        corners = (a or 0.004, -AXES_EDGE, b, -AXES_EDGE, b, AXES_EDGE, a or 0.004, AXES_EDGE)  # not on the y axis
        highest = f"{bytes_text(sum(phase.highest.values()))}: {parts_text(phase.highest)}"
        marks.append(Area(f"phase {number}", corners, "paper", words=f"{phase.name}, at its highest {highest}"))
    marks += [Line(f"phase end {x:.3f}", (x, -AXES_EDGE, x, AXES_EDGE), "faint", 1.0) for x in ends[1:-1]]
    marks += [Band(name, _steps(now, name).ravel(), width=1.2, **area_style(name)) for name in CATEGORIES]
    tops = _steps(now)
    x = float(tops[tops[:, 2].argmax() :][:2, 0].mean())
    marks.append(Line("peak line", (0, now.peak, _BAR[0], now.peak), "ink", 1.0, "dotted"))
    marks.append(Dots("peak mark", (x, now.peak + 0.025 * top), "down", 9.0, "ink"))
    if changed:
        label = f"The update at the start: peak {before}"
        marks.append(Line("start", _steps(start)[:, ::2].ravel(), "grey", 1.4, "dashed", label))
    axes = Axes(Axis(0.0, _BAR[1], spans=_spans(now.phases, ends)), Axis(0.0, top, ticks="bytes"))
    description = _peak_text(now) + f" At the start it was {before}." * changed
    corner = (f"\u2504 {outlined} {bytes_text(start.peak)}",) if changed else ()
    notes = (tuple(f"\u25bc peak {peak} in {where}" for where in (now.where, now.call)),)
    return Drawing("memory of one update", [*marks, *_peak_marks(now)], (axes,), description, corner, notes=notes)


def _phase_ends(phases: Sequence[Phase]) -> list[float]:
    """Return the boundaries of the phases as shares of the update's width, from 0 to 1."""
    names = [phase.name for phase in phases]
    shares = np.array([_SHARES[name] / names.count(name) for name in names])
    return [0.0, *(np.cumsum(shares) / shares.sum()).tolist()]


def _steps(update: UpdateMemory, category: str = "") -> np.ndarray:
    """Return rows of (x, lower edge, upper edge) for the band of ``category``, which is "" for the total."""
    moments = [moment for phase in update.phases for moment in phase.moments]
    edges = stacked({name: [moment[name] for moment in moments] for name in CATEGORIES}, len(moments))
    low, high = edges[category] if category else (np.zeros(len(moments)), edges[list(edges)[-1]][1])
    spans = zip(update.phases, pairwise(_phase_ends(update.phases)), strict=True)
    cuts = [np.linspace(a, b, len(phase.moments) + 1) for phase, (a, b) in spans]
    x = np.concatenate([np.repeat(each, 2)[1:-1] for each in cuts])
    return np.column_stack([np.where(np.repeat(high > low, 2), x, np.nan), np.repeat(low, 2), np.repeat(high, 2)])


def _spans(phases: Sequence[Phase], ends: Sequence[float]) -> tuple[AxisSpan, ...]:
    """Return the labels of calls below the axis. If there are several micro-batches, their passes share one label."""
    calls = list(zip(phases, pairwise(ends), strict=True))
    window = [span for phase, span in calls if phase.name in ("forward", "backward")]
    several = len(window) > 2
    names = [(each.name, span) for each, span in calls if not (several and span in window)]
    spans = [AxisSpan(*span, (name, _SHORT.get(name, name)), len(name)) for name, span in names]
    if several:
        texts = (f"{len(window) // 2} \u00d7 {pair}" for pair in ("forward, backward", "fwd, bwd"))
        spans.append(AxisSpan(window[0][0], window[-1][1], tuple(texts), bracket=True))
    return tuple(spans)


def _peak_marks(now: UpdateMemory) -> Iterator[Mark]:
    (left, right), low = _BAR, 0
    for name, size in now.at_peak.items():
        style, label = area_style(name), f"{name} {bytes_text(size)}"
        if size:
            corners = (left, low, right, low, right, low + size, left, low + size)
            yield Area(f"peak {name}", corners, width=1.2, words=f"at the peak: {label}", **style)
        if size > 0.004 * now.peak:  # smaller parts have no label
            middle, role = low + size / 2, text_role(name)
            yield Text(f"name {name}", (label, name), y=middle, where="margin", role=role, size=11.0)
        low += size


def _peak_text(now: UpdateMemory) -> str:
    return f"Peak {bytes_text(now.peak)} in {now.where}: {parts_text(now.at_peak)}."


def parts_text(sizes: Mapping[str, int]) -> str:
    """Return the categories that use memory as text, largest first: ``optimizer 200 KiB, activations 192 KiB``."""
    largest_first = sorted(sizes.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {bytes_text(size)}" for name, size in largest_first if size)
