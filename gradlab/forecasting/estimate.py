"""Forecast: will it fit? The ledger's answer for a model that need not fit here, before anything is allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from .._checks import number
from .._process import progress_bar
from ..formatting import gib_text
from ..loop import LONGEST_WINDOW, Recipe
from ..memory import MemoryPoint
from .cards import SHOWN, card_name, compute_capability, usable_bytes
from .extrapolate import simulate_blocks
from .reserve import CUDA_CONTEXT, RESERVE_MARGIN, Need, workspaces
from .sharding import check_sharding, one_card_of
from .simulate import ForecastError, SimulatedUpdate
from .told import covers
from .training import ZERO_GRAD_AT, Training
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

_CALLBACK: ContextVar[Callable[[int, int], None] | None] = ContextVar("progress", default=None)
_SWITCHES = ("batch", "window", "context")
_FIRST = ZERO_GRAD_AT[0]


@dataclass(frozen=True)
class Forecast:
    """Bytes that one update of a recipe needs, category by category, as a ``Ledger`` over a real run would say."""

    title: str
    peak: int
    """What PyTorch's tensors ask for at the highest moment."""
    at_peak: dict[str, int]
    peak_at: MemoryPoint
    timeline: list[MemoryPoint] = field(repr=False)
    parameters: int
    covers: str
    """What is counted and what is not, with direction and size."""
    device: str
    """Whose rules it is by: "cpu" or "cuda"."""
    _variants: _Variants = field(repr=False, compare=False)

    def need(self, card: str | int | None = None) -> Need:
        """Return what the training takes of a card: allocated, reserved, and CUDA's context, apart."""
        return self._variants.need(self._variants.at().peak, card)

    def fits(self, card: str | int) -> bool:
        """Say whether the training runs on a card, or on one with so many usable bytes: all of ``need`` is counted.

        A card means CUDA: what was forecast by the CPU's rules is done again, unless device="cpu" was asked for.
        """
        return self.need(card).total <= usable_bytes(card)

    def largest(self, switch: str, on: str | int) -> int:
        """Return the largest "batch", "window" or (of a size) "context" that still fits a card; 0 if not even 1 does.

        16 is the longest window of a Recipe: where 16 is the answer, the window does not matter.
        """
        usable = usable_bytes(on)
        return self._variants.largest(switch, self.need(on).room(usable))

    def table(self, on: str | int | None = None) -> str:
        """Return the forecast as text, with a row for the card that was asked about, if any, after the usual ones."""
        where = f"{self.peak_at.statement}, in {self.peak_at.module}" if self.peak_at.module else self.peak_at.statement
        rows = [self.title, f"{self.parameters:,} parameters; the peak comes at {where}", ""]
        rows += [f"{name:12}{gib_text(size):>14}" for name, size in self.at_peak.items()]
        rows += [f"{'peak':12}{gib_text(self.peak):>14}"]
        if self.device == "cuda":
            need = self.need()
            rows += [f"{'allocated':12}{gib_text(need.allocated):>14}  with cuBLAS' workspaces"]
            rows += [f"{'reserved':12}{gib_text(need.reserved):>14}  {need.margin:.0%} more, by the allocator"]
            rows += [f"{'in all':12}{gib_text(need.total):>14}  with CUDA's context", ""]
            asked = () if on is None else (card_name(on) or str(on),)
            for name in dict.fromkeys((*SHOWN, *asked)):
                room = (usable := usable_bytes(name)) - self.need(name).total
                fits = "fits" if room >= 0 else "too small by " + gib_text(-room)
                rows.append(f"{name:12}{gib_text(usable):>14}  {fits}")
        else:
            rows += ["", 'by the rules of a CPU; for a card: device="cuda"']
        return "\n".join([*rows, "", self.covers])

    def __repr__(self) -> str:
        return self.table()


@dataclass(frozen=True)
class _Variants:
    """Forecasts that differ in batch, window, context and device only, each made once."""

    workload: Workload
    training: Training
    shard: str | None
    cards: int
    margin: float
    card_device: str
    """Whose rules count on a card."""
    known: dict[tuple[int | None, int, int | None, str], SimulatedUpdate] = field(default_factory=dict)

    def at(
        self,
        batch: int | None = None,
        window: int | None = None,
        context: int | None = None,
        device: str | None = None,
    ) -> SimulatedUpdate:
        """Return what one card holds; None leaves batch, window and context as they are, and the device is a card's."""
        batch = self.workload.batch if batch is None else batch
        window = self.training.recipe.accumulate if window is None else window
        key = (batch, window, context, device or self.card_device)
        if key not in self.known:
            one = self.workload if batch is None else self.workload.resized(batch)
            one = one if context is None else one.with_context(context)
            recipe = self.training.recipe.replace(accumulate=window)
            training = replace(self.training, recipe=recipe, device=key[-1])
            with progress(self.workload.name) as on_calls:
                found = simulate_blocks(one, training, on_calls=on_calls)
            self.known[key] = one_card_of(found, self.shard, self.cards)
        return self.known[key]

    def need(self, tensors: int, card: str | int | None) -> Need:
        return Need(tensors, workspaces(None if card is None else compute_capability(card)), self.margin, CUDA_CONTEXT)

    def largest(self, switch: str, limit: int) -> int:
        if switch not in _SWITCHES:
            allowed = ", ".join(map(repr, _SWITCHES))
            raise ValueError(f"Forecast.largest: the switch must be one of {allowed}, got {switch!r}")
        if self.workload.update is not None and switch == "window":
            raise ValueError("Forecast.largest: an update of your own has its own window; ask for the 'batch'")
        if switch == "window":
            start = self.training.recipe.accumulate
            return largest_that_fits(lambda n: self.at(window=n), limit, LONGEST_WINDOW, start)
        if switch == "batch":
            return largest_that_fits(lambda n: self.at(batch=n), limit, LARGEST_BATCH, self.workload.rows)
        if self.workload.size is None:
            raise ValueError(
                "Forecast.largest: 'context' is for the published sizes; the samples of a task or a module say how "
                "long theirs is"
            )
        longest, start = self.workload.size.max_context, self.workload.samples[0][0].shape[1]
        return largest_that_fits(lambda n: self.at(context=n), limit, longest, start)


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
    dtype: str | None = None,
    optimizer: Any = None,
    zero_grad_at: str = "before forward",
    model: Any = None,
    setup: Any = None,
    shard: str | None = None,
    cards: int = 1,
    margin: float = RESERVE_MARGIN,
) -> Forecast:
    """Return how much memory a training needs, by running its own text on tensors without memory.

    what: a Task or the name of one; a ``torch.nn.Module`` with a sample ``batch=(x, y)``, each a tensor or tensors in
        a dict, tuple or list, or with one dict if the model computes its own loss (the model itself is neither copied
        nor changed, and may live on "meta"); a published size such as "llama-8b", one of
        ``gradlab.forecasting.model_sizes()``, or the config.json of a model of transformers, as a path or a dict; or an
        update of your own, a function ``update(model, made, batch)`` with ``model=``, a module or several in a dict,
        tuple or list, and ``setup=``, a function ``(model) -> made``, called once, that makes its optimizers and sets
        its hooks.
    recipe: a Recipe; None is the default one. An update of your own needs none.
    batch: rows in a batch; 1 for a size, as they are for a task. context: tokens in a row, for a size only; 2,048, or
        fewer if the model reads fewer.
    checkpoint: keep the inputs of the model's repeated blocks only, and compute the rest again in backward.
    loss_fn: (output, y) -> loss, for a module; without one it is the model's own ``output.loss``, the cross-entropy
        where y holds whole numbers, and the mean squared error elsewhere.
    device: "cuda" or "cpu", whose rules hold: what autocast casts, what a kernel keeps for backward, and how the
        optimizer runs. None is "cuda", and for a task its own device.
    dtype: "fp32", "bf16" or "fp16" for the weights; None leaves them as they are.
    optimizer: None is the recipe's as PyTorch runs it there; "foreach", "for-loop" or "fused" run it so;
        "adamw-8bit" and "adafactor" are others; or a function (parameters) -> torch.optim.Optimizer.
    zero_grad_at: "before forward", "before backward" (gradients are alive through forward) or "after step".
    shard, cards: what one of so many cards holds with "ddp", "ddp-view", "zero1", "zero2", "zero3" or "fsdp"; the
        formulas, with their sources, are in ``forecasting/sharding.py``.
    margin: what the allocator reserves above what is allocated, as a share; see ``forecasting/reserve.py``.

    Raises TypeError or ValueError that names what is wrong and what is allowed, and ForecastError (a ValueError) for a
    model that cannot be run without values.
    """
    if callable(what) and model is not None:
        given = {
            "recipe": recipe,
            "optimizer": optimizer,
            "zero_grad_at": None if zero_grad_at == _FIRST else zero_grad_at,
        }
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"forecast: an update has its own {name.split('_at')[0]}, got {name}={value!r}; leave it out"
                )
    elif model is not None or setup is not None:
        raise ValueError("forecast: model and setup are for an update of your own, a function (model, made, batch)")
    recipe = Recipe() if recipe is None else recipe
    if device not in (None, "cpu", "cuda"):
        raise ValueError(f"forecast: device must be 'cpu', 'cuda' or None, got {device!r}")
    training = Training(recipe, checkpoint, device or "cuda", dtype, optimizer, zero_grad_at)
    check_sharding(shard, cards)
    number("forecast: margin", margin, 0, 10)
    workload = as_workload(what, batch, context, loss_fn, model=model, setup=setup)
    training = replace(training, device=device or workload.device)
    variants = _Variants(workload, training, shard, cards, margin, device or "cuda")
    found = variants.at(device=training.device)
    return Forecast(
        title=_title(workload, training, shard, cards),
        peak=found.peak,
        at_peak=found.at_peak,
        peak_at=found.peak_at,
        timeline=found.timeline,
        parameters=found.parameters,
        covers=covers(training, found, margin, shard, workload),
        device=training.device,
        _variants=variants,
    )


def _title(workload: Workload, training: Training, shard: str | None, cards: int) -> str:
    words = [workload.name, f"batch {workload.rows}"]
    if workload.size is not None:
        words.append(f"context {workload.samples[0][0].shape[1]}")
    if workload.update is None:
        words += training.words()
    return ", ".join([*words, *[f"one of {cards} cards with {shard}"] * (shard is not None)])
