"""Forecast: will it fit? The ledger's answer for a model that need not fit here, before anything is allocated."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from .._process import progress_bar
from ..formatting import gib_text
from ..loop import Recipe
from ..memory import MemoryPoint
from .cards import CUDA_CONTEXT_BYTES, RESERVE_MARGIN, SHOWN, Need, card_name, need_on, usable_bytes
from .cuda_rules import autocast_lists
from .scaling import check_sharding, share_of_one_card, simulate_blocks
from .simulate import SimulatedUpdate
from .training import Training
from .workload import LARGEST_BATCH, Workload, as_workload

_MAX_INTERPOLATIONS = 8  # then bisect
_CALLBACK: ContextVar[Callable[[int, int], None] | None] = ContextVar("progress", default=None)


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
    _rows: int = field(repr=False, compare=False)
    _simulate: Callable[..., SimulatedUpdate] = field(repr=False, compare=False)
    """What one card holds, given the rows of a batch; by default it is the batch of the forecast."""

    def need(self, card: str | int | None = None) -> Need:
        """Return what the training takes of a card: allocated, reserved, and CUDA's context, apart."""
        return need_on(card, self._simulate().peak)

    def fits(self, card: str | int) -> bool:
        """Say whether the training runs on a card, or on one with so many usable bytes: all of ``need`` is counted.

        A card means CUDA: what was forecast by the CPU's rules is done again, unless device="cpu" was asked for.
        """
        return self.need(card).total <= usable_bytes(card)

    def largest(self, switch: str, on: str | int) -> int:
        """Return the largest "batch" that still fits a card, 0 if not even 1 does; "batch" is the only ``switch``."""
        usable = usable_bytes(on)
        if switch != "batch":
            raise ValueError(f"Forecast.largest: the switch must be 'batch', got {switch!r}")
        return largest_that_fits(self._simulate, self.need(on).room(usable), LARGEST_BATCH, self._rows)

    def table(self, on: str | int | None = None) -> str:
        """Return the forecast as text, with a row for the card that was asked about, if any, after the usual ones."""
        where = f"{self.peak_at.statement}, in {self.peak_at.module}" if self.peak_at.module else self.peak_at.statement
        rows = [self.title, f"{self.parameters:,} parameters; the peak comes at {where}", ""]
        rows += [f"{name:12}{gib_text(size):>14}" for name, size in self.at_peak.items()]
        rows += [f"{'peak':12}{gib_text(self.peak):>14}"]
        if self.device == "cuda":
            need = self.need()
            rows += [f"{'allocated':12}{gib_text(need.allocated):>14}  with cuBLAS' workspaces"]
            rows += [f"{'reserved':12}{gib_text(need.reserved):>14}  {RESERVE_MARGIN:.0%} more, by the allocator"]
            rows += [f"{'in all':12}{gib_text(need.total):>14}  with CUDA's context", ""]
            chosen = () if on is None else (card_name(on) or str(on),)
            for name in dict.fromkeys((*SHOWN, *chosen)):
                room = (usable := usable_bytes(name)) - self.need(name).total
                fits = "fits" if room >= 0 else "too small by " + gib_text(-room)
                rows.append(f"{name:12}{gib_text(usable):>14}  {fits}")
        else:
            rows += ["", 'by the rules of a CPU; for a card: device="cuda"']
        return "\n".join([*rows, "", self.covers])

    def __repr__(self) -> str:
        return self.table()


def largest_that_fits(simulate: Callable[[int], SimulatedUpdate], limit: int, upper: int, start: int) -> int:
    """Return the largest n up to ``upper`` whose peak is within ``limit``, 0 if none; ``start`` is where to begin.

    Every stretch of the timeline grows about linearly with n, but not all of them equally, so that the peak bends. The
    guess comes from all stretches of two forecasts; what is returned was forecast itself, and so was the next one.
    """
    updates: dict[int, SimulatedUpdate] = {}
    low, high, guess = 0, upper + 1, start  # low fits, high does not
    while high - low > 1:
        n = min(max(guess, low + 1), high - 1)
        updates[n] = simulate(n)
        if updates[n].peak <= limit:
            low = n
        else:
            high = n
        if low == 0:
            guess = 1
        elif len(updates) == 1:
            guess = 2 * low
        elif len(updates) > _MAX_INTERPOLATIONS:
            guess = (low + high) // 2
        else:
            below, above = sorted(n for n in updates if n <= low), sorted(n for n in updates if n >= high)
            first, second = [*below[-2:], *above[:1]][-2:]
            guess = _crossing(first, updates[first], second, updates[second], limit)
    return low


def _crossing(n: int, at_n: SimulatedUpdate, m: int, at_m: SimulatedUpdate, limit: int) -> int:
    """Return the last number at which no stretch is above the limit, if each grows along a line."""
    pairs = [(at_n.peak, at_m.peak)]
    if len(at_n.timeline) == len(at_m.timeline):
        pairs += [(a.top, b.top) for a, b in zip(at_n.timeline, at_m.timeline, strict=True)]
    crossings = [n + (limit - a) * (m - n) // (b - a) for a, b in pairs if b > a]
    return min(crossings, default=2 * m)


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
    optimizer: str | None = None,
    shard: str | None = None,
    cards: int = 1,
) -> Forecast:
    """Return how much memory a training needs, by running its own text on tensors without memory.

    Args:
        what: A Task or the name of one; a ``torch.nn.Module`` with a sample ``batch``; or a published size such as
            "llama-8b" (``gradlab forecast --help`` lists them). A module is neither copied nor changed, and may live on
            "meta".
        recipe: A Recipe; None is the default one.
        batch: Rows in a batch: 1 for a size, those of a task as they are. Of a module a sample ``(x, y)``, each a
            tensor or tensors in a dict, tuple or list, or one dict if the model computes its own loss.
        context: Tokens in a row, for a size only; 2,048, or fewer if the model reads fewer.
        checkpoint: Keep the inputs of the model's repeated blocks only, and compute the rest again in backward.
        loss_fn: (output, y) -> loss, for a module; without one it is the model's own ``output.loss``, the cross-entropy
            where y holds whole numbers, and the mean squared error elsewhere.
        device: "cuda" or "cpu", whose rules hold: what autocast casts, what a kernel keeps for backward, and how the
            optimizer runs. None is "cuda", and for a task its own device.
        dtype: "fp32", "bf16" or "fp16" for the weights; None leaves them as they are.
        optimizer: None is the recipe's; "adamw-8bit" has states of one byte an element.
        shard, cards: What one of several cards holds with "ddp", "zero1", "zero2", "zero3" or "fsdp"; the formulas,
            with their sources, are in ``forecasting/scaling.py``.

    Returns:
        A Forecast: the peak and its categories, the timeline, and what fits.

    Raises:
        TypeError, ValueError: What is wrong and what is allowed.
        ForecastError: The model cannot be run without values; it is a ValueError.
    """
    recipe = Recipe() if recipe is None else recipe
    training = Training(recipe, checkpoint, "cuda" if device is None else device, dtype, optimizer)
    check_sharding(shard, cards)
    workload = as_workload(what, batch, context, loss_fn)

    @functools.cache
    def simulate(rows: int | None, rules: str) -> SimulatedUpdate:
        resized = workload if rows is None else workload.resized(rows)
        with progress(workload.name) as on_calls:
            whole = simulate_blocks(resized, replace(training, device=rules), on_calls=on_calls)
        return share_of_one_card(whole, shard, cards)

    training = replace(training, device=device or workload.device)
    update = simulate(workload.batch, training.device)
    return Forecast(
        title=_title(workload, training, shard, cards),
        peak=update.peak,
        at_peak=update.at_peak,
        peak_at=update.peak_at,
        timeline=update.timeline,
        parameters=update.parameters,
        covers=_assumptions(workload, training, update, sharded=shard is not None),
        device=training.device,
        _rows=workload.rows,
        _simulate=lambda rows=workload.batch: simulate(rows, device or "cuda"),
    )


def _title(workload: Workload, training: Training, shard: str | None, cards: int) -> str:
    parts = [workload.name, f"batch {workload.rows}"]
    if workload.size is not None:
        parts.append(f"context {workload.samples[0][0].shape[1]}")
    return ", ".join([*parts, *training.summary(), *[f"one of {cards} cards with {shard}"] * (shard is not None)])


_CPU = (
    "Counted: what PyTorch's tensors ask for over the second update, when the optimizer has its state, by the rules of "
    "a CPU, which are not those of a GPU: autocast casts less there, attention with dropout keeps matrices of context "
    "times context, and dropout's mask is as wide as its input. The same training took 8 to 35 % more on a GPU with "
    "AMP, and less where attention has dropout."
)
_CUDA = (
    "Counted: what PyTorch's tensors ask for over the second update, when the optimizer has its state, by CUDA's "
    "rules: what autocast casts, one byte for each element of dropout's mask, and fused attention, as on a card of "
    "compute capability 8.0 or later."
)
_AUTOCAST = "Autocast casts what this PyTorch lists; older ones ran other operations in float32."
_NO_HEADER = "This PyTorch came without its header autocast_mode.h, so autocast casts what it does on a CPU."
_CARD = (
    f"A card must hold more: cuBLAS' workspaces, what the allocator reserves above ({RESERVE_MARGIN:.0%}) and CUDA's "
    f"context ({CUDA_CONTEXT_BYTES / 1e9:.2f} GB)."
)
_NOT_COUNTED = (
    "Not counted, so that a real run takes more: what a kernel needs while it works (cuDNN's convolutions: tens to "
    "some hundreds of MiB; the backward of attention: its gradients once more in float32), and the allocator's "
    "rounding (to 512 bytes, and up to 1 MiB at the end of a large block: 2 % of minGPT's GPT-2 XL)."
)
_COMPILED = (
    "The model is compiled (torch.compile), and this is the forecast of running it eagerly; compiled code keeps less, "
    "for Llama 3.2 3B 51.0 GiB instead of 60.0 (README of torchtune)."
)
_RECURRENT = (
    "Recurrent layers (nn.LSTM, nn.GRU, nn.RNN) are counted as without cuDNN: their activations come out too high, an "
    "LSTM's about twice, a GRU's several times; cuDNN's own reserve, which only a GPU tells, is not in it."
)


def _assumptions(workload: Workload, training: Training, update: SimulatedUpdate, *, sharded: bool) -> str:
    """Return what a forecast counts and what it leaves out, with direction and size."""
    recipe = training.recipe
    order = "all parameters at once, as it does on a GPU" if training.uses_foreach else "one parameter after another"
    steps = [f"The optimizer updates {order}."] * (training.optimizer is None)
    if training.device == "cuda":
        autocast = [_AUTOCAST if autocast_lists() else _NO_HEADER] * (recipe.amp != "off")
        parts = [_CUDA, *autocast, *steps, _CARD, _NOT_COUNTED, *[_RECURRENT] * update.recurrent]
    else:
        parts = [_CPU, *steps]
    parts += [_COMPILED] * workload.compiled
    parts += ["No gradient overflows: every step is taken."] * (recipe.amp == "fp16")
    if update.micro_batches < recipe.accumulate:
        parts.append(f"Of {recipe.accumulate} micro-batches {update.micro_batches} are run; the others repeat.")
    if sharded:
        parts.append("The share of one card is arithmetic; what the exchange between cards needs is not counted.")
    return " ".join(parts)
