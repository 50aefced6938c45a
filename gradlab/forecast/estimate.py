"""Forecast: will it fit? The ledger's answer for a model that need not fit here, before anything is allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from .._checks import on_off
from .._process import progress_bar
from ..formatting import gib_text
from ..loop import LONGEST_WINDOW, Recipe
from ..memory import MemoryPoint
from .cards import GPUS, SHOWN, usable_bytes
from .extrapolate import simulate_blocks
from .simulate import ForecastError, SimulatedUpdate
from .workload import LARGEST_BATCH, Workload, as_workload

_GUESSES = 8  # after so many the search halves what is left


def largest_that_fits(simulate: Callable[[int], SimulatedUpdate], limit: int, upper: int, start: int) -> int:
    """Return the largest n up to ``upper`` whose peak is within ``limit``, 0 if none; ``start`` is where to begin.

    Every stretch of the timeline grows about linearly with n, but not all of them equally, so that the peak bends. The
    guess comes from all stretches of two forecasts; what is returned was forecast itself, and so was the next one.
    """
    seen: dict[int, SimulatedUpdate] = {}
    low, high, guess = 0, upper + 1, start  # low fits, high does not
    while high - low > 1:
        n = min(max(guess, low + 1), high - 1)
        seen[n] = simulate(n)
        if seen[n].peak <= limit:
            low = n
        else:
            high = n
        if low == 0:
            guess = 1
        elif len(seen) == 1:
            guess = 2 * low
        elif len(seen) > _GUESSES:
            guess = (low + high) // 2
        else:
            first, second = [*sorted(n for n in seen if n <= low)[-2:], *sorted(n for n in seen if n >= high)[:1]][-2:]
            guess = _crossing(first, seen[first], second, seen[second], limit)
    return low


def _crossing(n: int, at_n: SimulatedUpdate, m: int, at_m: SimulatedUpdate, limit: int) -> int:
    """Return the last number at which no stretch is above the limit, if each grows along a line."""
    pairs = [(at_n.peak, at_m.peak)]
    if len(at_n.timeline) == len(at_m.timeline):
        pairs += [(a.top, b.top) for a, b in zip(at_n.timeline, at_m.timeline, strict=True)]
    room = [n + (limit - a) * (m - n) // (b - a) for a, b in pairs if b > a]
    return min(room, default=2 * m)


__all__ = ["Forecast", "ForecastError", "forecast"]

WHAT_IS_COUNTED = (
    "Counted: what PyTorch's tensors ask for over the second update, when the optimizer has its state, with the "
    "kernels of the CPU. Not counted: the allocator's rounding and fragmentation, workspaces of kernels (cuBLAS, "
    "cuDNN), CUDA's own few hundred MiB, and kernels that keep other tensors on a GPU (attention, normalisation)."
)

_CALLBACK: ContextVar[Callable[[int, int], None] | None] = ContextVar("progress", default=None)


@dataclass(frozen=True)
class Forecast:
    """Bytes that one update of a recipe needs, category by category, as a ``Ledger`` over a real run would say."""

    title: str
    peak: int
    at_peak: dict[str, int]
    peak_at: MemoryPoint
    timeline: list[MemoryPoint] = field(repr=False)
    parameters: int
    covers: str
    """What is counted and what is not."""
    _variants: _Variants = field(repr=False, compare=False)

    def fits(self, card: str | int) -> bool:
        """Say whether the peak is within a card's usable bytes, or within a number of bytes."""
        return self.peak <= usable_bytes(card)

    def largest(self, switch: str, on: str | int) -> int:
        """Return the largest "batch" or "window" that still fits on a card; 0 if not even 1 does.

        16 is the longest window of a Recipe: where 16 is the answer, the window does not matter.
        """
        return self._variants.largest(switch, usable_bytes(on))

    def table(self) -> str:
        """Return the forecast as text."""
        where = f"{self.peak_at.statement}, in {self.peak_at.module}" if self.peak_at.module else self.peak_at.statement
        rows = [self.title, f"{self.parameters:,} parameters; the peak comes at {where}", ""]
        rows += [f"{name:12}{gib_text(size):>14}" for name, size in self.at_peak.items()]
        rows += [f"{'peak':12}{gib_text(self.peak):>14}", ""]
        for name in SHOWN:
            room = (usable := GPUS[name]) - self.peak
            rows.append(
                f"{name:12}{gib_text(usable):>14}  {'fits' if room >= 0 else 'too small by ' + gib_text(-room)}"
            )
        return "\n".join([*rows, "", self.covers])

    def __repr__(self) -> str:
        return self.table()


@dataclass(frozen=True)
class _Variants:
    """Forecasts that differ in batch and window only, each made once."""

    workload: Workload
    recipe: Recipe
    checkpoint: bool
    device: str
    known: dict[tuple[int | None, int], SimulatedUpdate] = field(default_factory=dict)

    def simulated(self, batch: int | None, window: int) -> SimulatedUpdate:
        key = (batch, window)
        if key not in self.known:
            one = self.workload if batch is None else self.workload.resized(batch)
            with progress(self.workload.name) as on_calls:
                self.known[key] = simulate_blocks(
                    one,
                    self.recipe.replace(accumulate=window),
                    checkpoint=self.checkpoint,
                    device=self.device,
                    on_calls=on_calls,
                )
        return self.known[key]

    def largest(self, switch: str, limit: int) -> int:
        if switch not in ("batch", "window"):
            raise ValueError(f"Forecast.largest: the switch must be 'batch' or 'window', got {switch!r}")
        window = self.recipe.accumulate
        if switch == "window":
            return largest_that_fits(lambda n: self.simulated(self.workload.batch, n), limit, LONGEST_WINDOW, window)
        return largest_that_fits(lambda n: self.simulated(n, window), limit, LARGEST_BATCH, self.workload.rows)


@contextmanager
def report_progress_to(callback: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``callback(calls, expected)`` as forecasts in the block go on, in the place of a bar: for widgets."""
    token = _CALLBACK.set(callback)
    try:
        yield
    finally:
        _CALLBACK.reset(token)


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function to call with the operations that are done and expected: it moves a bar, or tells a widget."""
    if (callback := _CALLBACK.get()) is not None:
        yield callback
        return
    with progress_bar(100, f"forecast {name}", unit="%") as bar:
        yield lambda calls, expected: bar.update(min(100 * calls // expected, 100) - bar.n)
        bar.update(bar.total - bar.n)  # a notebook's bar that is closed before its total turns red and stays


def forecast(
    what: Any,
    recipe: Recipe | None = None,
    *,
    batch: Any = None,
    context: int | None = None,
    checkpoint: bool = False,
    loss_fn: Any = None,
    device: str | None = None,
) -> Forecast:
    """Return how much memory a recipe needs on a model, by running the recipe's own text on tensors without memory.

    what: a Task or the name of one; a ``torch.nn.Module`` with a sample ``batch=(x, y)`` (the model itself is neither
        copied nor changed, and may live on "meta"); or the name of a published size such as "llama-8b", one of
        ``gradlab.forecast.model_sizes()``.
    recipe: a Recipe; None is the default one.
    batch: rows in a batch; 1 for a size, as they are for a task. context: tokens in a row, for a size only; 2,048, or
        fewer if the model reads fewer.
    checkpoint: keep the inputs of the model's repeated blocks only, and compute the rest again in backward.
    loss_fn: (output, y) -> loss, for a module; without one it is the cross-entropy where y holds whole numbers, and
        the mean squared error elsewhere.
    device: "cpu" or "cuda", whose optimizer is meant: PyTorch updates one parameter after another on a CPU and all at
        once on a GPU (``foreach``), for which Adam needs passing results as large as the weights; see the note on
        peak memory in the documentation of torch.optim. None is the task's or module's own device, "cuda" for a size.

    Raises TypeError or ValueError that names what is wrong and what is allowed, and ForecastError (a ValueError) for a
    model that cannot be run without values.
    """
    recipe = Recipe() if recipe is None else recipe
    if not isinstance(recipe, Recipe):
        raise TypeError(f"forecast: recipe must be a gradlab.Recipe, got {recipe!r}")
    on_off("forecast: checkpoint", checkpoint)
    if device not in (None, "cpu", "cuda"):
        raise ValueError(f"forecast: device must be 'cpu', 'cuda' or None, got {device!r}")
    workload = as_workload(what, batch, context, loss_fn)
    variants = _Variants(workload, recipe, checkpoint, device or workload.device)
    found = variants.simulated(workload.batch, recipe.accumulate)
    return Forecast(
        title=_title(workload, recipe, checkpoint),
        peak=found.peak,
        at_peak=found.at_peak,
        peak_at=found.peak_at,
        timeline=found.timeline,
        parameters=found.parameters,
        covers=_covers(variants, found),
        _variants=variants,
    )


def _title(workload: Workload, recipe: Recipe, checkpoint: bool) -> str:
    words = [workload.name, f"batch {workload.rows}"]
    if workload.size is not None:
        words.append(f"context {workload.samples[0][0].shape[1]}")
    words += [recipe.optimizer, f"AMP {recipe.amp}", f"window {recipe.accumulate}"]
    words += ["zero_grad off"] * (not recipe.zero_grad) + ["set_to_none off"] * (not recipe.set_to_none)
    return ", ".join([*words, *["checkpointing"] * checkpoint])


def _covers(variants: _Variants, found: SimulatedUpdate) -> str:
    parts = [WHAT_IS_COUNTED]
    if variants.device == "cuda":
        parts.append("The optimizer updates all parameters at once, as it does on a GPU.")
    else:
        parts.append('The optimizer updates one parameter after another, as it does on a CPU; see device="cuda".')
    if variants.recipe.amp == "fp16":
        parts.append("No gradient overflows: every step is taken.")
    if found.micro_batches < variants.recipe.accumulate:
        parts.append(f"Of {variants.recipe.accumulate} micro-batches {found.micro_batches} are run; the others repeat.")
    return " ".join(parts)
