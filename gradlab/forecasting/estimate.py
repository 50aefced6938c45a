"""Forecasts of the memory that a training run needs on a card, made without allocating it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..formatting import column_unit, in_unit
from ..loop import Recipe
from ..memory import MemoryPoint
from .cards import CUDA_CONTEXT_BYTES, RESERVE_MARGIN, SHOWN, Need, card_name, need_on, usable_bytes
from .cuda_rules import autocast_lists
from .scaling import check_sharding, share_of_one_card, simulate_blocks
from .simulate import SimulatedUpdate
from .training import Training
from .workload import LARGEST_BATCH, as_workload

_MAX_INTERPOLATIONS = 8  # number of computed peaks after which the search bisects


@dataclass(frozen=True)
class Forecast:
    """Bytes that one update of a recipe needs, by category, as a ``Ledger`` of a real run would report them."""

    title: str
    peak: int
    """Bytes that PyTorch's tensors request at the peak."""
    at_peak: dict[str, int]
    peak_at: MemoryPoint
    timeline: list[MemoryPoint] = field(repr=False)
    parameters: int
    covers: str
    """The assumptions: what is counted and what is not, and by how much a real run may differ."""
    device: str
    """The device whose rules apply: "cpu" or "cuda"."""
    _rows: int = field(repr=False, compare=False)
    _peak_of: Callable[..., int] = field(repr=False, compare=False)
    """A function that returns the peak on one card, given the rows in a batch (default: this forecast's rows)."""

    def need(self, card: str | int | None = None) -> Need:
        """Return the Need of the training run on a card: the bytes allocated, reserved and needed in total."""
        return need_on(card, self._peak_of())

    def fits(self, card: str | int) -> bool:
        """Return whether the total of ``need`` fits a card, given by its name, a size or its number of usable bytes.

        A forecast that used the CPU's rules only by default is repeated with CUDA's rules.
        """
        return self.need(card).total <= usable_bytes(card)

    def largest(self, switch: str, on: str | int) -> int:
        """Return the number of rows in the largest batch that fits on the card, or 0; ``switch`` must be "batch"."""
        usable = usable_bytes(on)
        if switch != "batch":
            raise ValueError(f"Forecast.largest: the switch must be 'batch', got {switch!r}")
        return largest_that_fits(self._peak_of, self.need(on).room(usable), LARGEST_BATCH, self._rows)

    def table(self, on: str | int | None = None) -> str:
        """Return the forecast as text. A forecast by CUDA's rules lists the cards in ``SHOWN`` and the card ``on``."""
        site = f"{self.peak_at.statement}, in {self.peak_at.module}" if self.peak_at.module else self.peak_at.statement
        rows = [self.title, f"{self.parameters:,} parameters; the peak comes at {site}", ""]
        unit = column_unit(self.peak)
        rows += [f"{name:12}{in_unit(size, unit):>14}" for name, size in {**self.at_peak, "peak": self.peak}.items()]
        if self.device == "cuda":
            need = self.need()
            rows += [""] * (unit != "GiB")  # the next rows are in GiB, like those of the cards
            rows += [f"{'allocated':12}{in_unit(need.allocated):>14}  with cuBLAS' workspaces"]
            rows += [f"{'reserved':12}{in_unit(need.reserved):>14}  {RESERVE_MARGIN:.0%} more, by the allocator"]
            rows += [f"{'in all':12}{in_unit(need.total):>14}  with CUDA's context", ""]
            chosen = () if on is None else (card_name(on) or str(on),)
            for name in dict.fromkeys((*SHOWN, *chosen)):
                room = (usable := usable_bytes(name)) - self.need(name).total
                fits = "fits" if room >= 0 else "too small by " + in_unit(-room)
                rows.append(f"{name:12}{in_unit(usable):>14}  {fits}")
        else:
            rows += ["", 'by the rules of a CPU; for a card: device="cuda"']
        return "\n".join([*rows, "", self.covers])

    def __repr__(self) -> str:
        return self.table()


def largest_that_fits(peak_of: Callable[[int], int], limit: int, upper: int, start: int) -> int:
    """Return the largest n up to ``upper`` with a peak of at most ``limit``, or 0; ``start`` is the first guess for n.

    Later guesses assume that the peak grows piecewise linearly with n, but the peak at the result is computed.
    """
    peaks: dict[int, int] = {}
    low, high, guess = 0, upper + 1, start  # low fits, high does not
    while high - low > 1:
        n = min(max(guess, low + 1), high - 1)
        peaks[n] = peak_of(n)
        if peaks[n] <= limit:
            low = n
        else:
            high = n
        if low == 0:
            guess = 1
        elif len(peaks) == 1:
            guess = 2 * low
        elif len(peaks) > _MAX_INTERPOLATIONS:
            guess = (low + high) // 2
        else:
            first, second = [*sorted(n for n in peaks if n <= low)[-2:], *([high] if high in peaks else [])][-2:]
            rise = peaks[second] - peaks[first]
            guess = first + (limit - peaks[first]) * (second - first) // rise if rise > 0 else 2 * second
    return low


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
    """Forecast the memory that a training run needs, by running its loop on tensors without memory.

    Args:
        what: A Task or the name of a task; a ``torch.nn.Module`` with a sample ``batch``; or a published size such as
            "llama-8b" (``gradlab forecast --help`` lists them). A module is not changed, and may be on the "meta"
            device; a compiled module is run eagerly, which keeps more memory.
        recipe: A Recipe; None is the default recipe.
        batch: For a size or a task, the rows in a batch; None is 1 for a size and the task's own batches for a task.
            For a module, a sample ``(x, y)`` of tensors, or of dicts, tuples or lists of tensors; or one dict if the
            model computes its own loss.
        context: Tokens in a row, for a size only; None is 2,048, or the model's maximum if that is smaller.
        checkpoint: Keep only the inputs of the model's repeated blocks, and recompute the rest in backward.
        loss_fn: For a module, a function (output, y) -> loss, or (output, batch) -> loss if the batch is one dict. None
            is the model's own ``output.loss``, else the cross-entropy for integer y, else the mean squared error.
        device: "cuda" or "cpu", whose rules apply to autocast's casts, the tensors that kernels save for backward, and
            the optimizer. None is a task's own device, and "cuda" for anything else.
        dtype: "fp32", "bf16" or "fp16" for the weights; None leaves them as they are.
        optimizer: None is the recipe's optimizer; "adamw-8bit" has states of one byte per element.
        shard, cards: Forecast the share of one of ``cards`` cards with "ddp", "zero1", "zero2", "zero3" or "fsdp"; the
            formulas and their sources are in ``forecasting/scaling.py``.

    Returns:
        A Forecast with the peak, its categories and the timeline, and methods that compare it with cards.

    Raises:
        TypeError, ValueError: An argument is invalid; the message names the allowed values.
        ForecastError: The model cannot be run without values. A ForecastError is a ValueError.
    """
    recipe = Recipe() if recipe is None else recipe
    training = Training(recipe, checkpoint, "cuda" if device is None else device, dtype, optimizer)
    check_sharding(shard, cards)
    workload = as_workload(what, batch, context, loss_fn)

    @functools.cache
    def simulate(rows: int | None, rules: str) -> SimulatedUpdate:
        resized = workload if rows is None else workload.resized(rows)
        return share_of_one_card(simulate_blocks(resized, replace(training, device=rules)), shard, cards)

    training = replace(training, device=device or workload.device)
    update = simulate(workload.batch, training.device)
    title = [workload.name, f"batch {workload.rows}"]
    if workload.size is not None:
        title.append(f"context {workload.samples[0][0].shape[1]}")
    title += [*training.summary(), *[f"one of {cards} cards with {shard}"] * (shard is not None)]
    return Forecast(
        title=", ".join(title),
        peak=update.peak_at.top,
        at_peak=update.peak_at.high,
        peak_at=update.peak_at,
        timeline=update.timeline,
        parameters=update.parameters,
        covers=_assumptions(training, recurrent=update.recurrent, sharded=shard is not None),
        device=training.device,
        _rows=workload.rows,
        _peak_of=lambda rows=workload.batch: simulate(rows, device or "cuda").peak_at.top,
    )


_CPU = (
    "Counted: the memory of PyTorch's tensors in the second update, when the optimizer has its state, by the rules of "
    "a CPU, which are not those of a GPU: the same training run took 8 to 35 % more on a GPU with AMP, and less if "
    "attention had dropout."
)
_CUDA = (
    "Counted: the memory of PyTorch's tensors in the second update, when the optimizer has its state, by CUDA's "
    "rules: autocast's casts, one byte for each element of a dropout mask, and fused attention, as on a card of "
    "compute capability 8.0 or later."
)
_AUTOCAST = "Autocast casts the operations that this PyTorch lists; older versions ran others in float32."
_NO_HEADER = "This PyTorch came without its header autocast_mode.h, so autocast casts the same operations as on a CPU."
_NOT_COUNTED = (
    f"A card must hold more: cuBLAS' workspaces, the allocator's reserve ({RESERVE_MARGIN:.0%} more) and CUDA's "
    f"context ({CUDA_CONTEXT_BYTES / 1e9:.2f} GB). "
    "Not counted, so a real run takes more: memory that kernels need while they run (tens to hundreds of MiB for "
    "cuDNN's convolutions; a float32 copy of its gradients for the backward pass of attention), and the allocator's "
    "rounding (to 512 bytes, and up to 1 MiB at the end of a large block: 2 % of minGPT's GPT-2 XL)."
)
_RECURRENT = (
    "Recurrent layers (nn.LSTM, nn.GRU, nn.RNN) are counted by the CPU's kernels, which overestimates activations: an "
    "LSTM's likely about twice, a GRU's several times. cuDNN's own reserve, which only a GPU reports, is not counted."
)
_SHARE = "The share of one card is computed by formulas; memory for the exchange between cards is not counted."


def _assumptions(training: Training, *, recurrent: bool, sharded: bool) -> str:
    cuda = training.device == "cuda"
    order = "all parameters at once, as it does on a GPU" if training.uses_foreach else "one parameter after another"
    applies = {
        _CUDA if cuda else _CPU: True,
        _AUTOCAST if autocast_lists() else _NO_HEADER: cuda and training.recipe.amp != "off",
        f"The optimizer updates {order}.": training.optimizer is None,
        _NOT_COUNTED: cuda,
        _RECURRENT: cuda and recurrent,
        _SHARE: sharded,
    }
    return " ".join(text for text, it_does in applies.items() if it_does)
