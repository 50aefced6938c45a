"""Forecast: will it fit? The ledger's answer for a model that need not fit here, before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .cards import CARDS, capacity
from .largest import largest
from .loop import LONGEST_WINDOW, Recipe
from .memory import MemoryPoint
from .progress import Progress
from .refusals import ForecastError
from .rehearsal import Rehearsal, rehearse
from .subjects import LARGEST_BATCH, Subject, subject

__all__ = ["Forecast", "ForecastError", "forecast"]

COVERS = (
    "Counted: what PyTorch's tensors ask for over the second update, when the optimizer has its state, with the "
    "kernels of the CPU. Not counted: the allocator's rounding and fragmentation, workspaces of kernels (cuBLAS, "
    "cuDNN), CUDA's own few hundred MiB, and kernels that keep other tensors on a GPU (attention, normalisation)."
)


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
    _family: _Family = field(repr=False, compare=False)

    def fits(self, card: str | int) -> bool:
        """Say whether the peak is within a card's usable bytes, or within a number of bytes."""
        return self.peak <= capacity(card)

    def largest(self, switch: str, on: str | int) -> int:
        """Return the largest "batch" or "window" that still fits on a card; 0 if not even 1 does.

        16 is the longest window of a Recipe: where 16 is the answer, the window does not matter.
        """
        return self._family.largest(switch, capacity(on))

    def table(self) -> str:
        """Return the forecast as text."""
        where = f"{self.peak_at.statement}, in {self.peak_at.module}" if self.peak_at.module else self.peak_at.statement
        rows = [self.title, f"{self.parameters:,} parameters; the peak comes at {where}", ""]
        rows += [f"{name:12}{_gib(size):>14}" for name, size in self.at_peak.items()]
        rows += [f"{'peak':12}{_gib(self.peak):>14}", ""]
        for name, usable in CARDS.items():
            room = usable - self.peak
            rows.append(f"{name:12}{_gib(usable):>14}  {'fits' if room >= 0 else 'too small by ' + _gib(-room)}")
        return "\n".join([*rows, "", self.covers])

    def __repr__(self) -> str:
        return self.table()


@dataclass(frozen=True)
class _Family:
    """Forecasts that differ in batch and window only, each made once."""

    subject: Subject
    recipe: Recipe
    checkpoint: bool
    device: str
    known: dict[tuple[int | None, int], Rehearsal] = field(default_factory=dict)

    def rehearsal(self, batch: int | None, window: int) -> Rehearsal:
        key = (batch, window)
        if key not in self.known:
            one = self.subject if batch is None else self.subject.resized(batch)
            with Progress(self.subject.name) as bar:
                self.known[key] = rehearse(
                    one,
                    self.recipe.replace(accumulate=window),
                    checkpoint=self.checkpoint,
                    device=self.device,
                    on_calls=bar,
                )
        return self.known[key]

    def largest(self, switch: str, limit: int) -> int:
        if switch not in ("batch", "window"):
            raise ValueError(f"Forecast.largest: the switch must be 'batch' or 'window', got {switch!r}")
        window = self.recipe.accumulate
        if switch == "window":
            return largest(lambda n: self.rehearsal(self.subject.batch, n), limit, LONGEST_WINDOW, window)
        return largest(lambda n: self.rehearsal(n, window), limit, LARGEST_BATCH, self.subject.rows)


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
        copied nor changed, and may live on "meta"); or a published size, "gpt2-1.5b", "llama-8b", "llama-70b" or
        "llama-405b".
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
    if not isinstance(checkpoint, bool):
        raise TypeError(f"forecast: checkpoint must be True or False, got {checkpoint!r}")
    if device not in (None, "cpu", "cuda"):
        raise ValueError(f"forecast: device must be 'cpu', 'cuda' or None, got {device!r}")
    about = subject(what, batch, context, loss_fn)
    family = _Family(about, recipe, checkpoint, device or about.device)
    found = family.rehearsal(about.batch, recipe.accumulate)
    return Forecast(
        title=_title(about, recipe, checkpoint),
        peak=found.peak,
        at_peak=found.at_peak,
        peak_at=found.peak_at,
        timeline=found.timeline,
        parameters=found.parameters,
        covers=_covers(family, found),
        _family=family,
    )


def _title(about: Subject, recipe: Recipe, checkpoint: bool) -> str:
    words = [about.name, f"batch {about.rows}"]
    if about.size is not None:
        words.append(f"context {about.samples[0][0].shape[1]}")
    words += [recipe.optimizer, f"AMP {recipe.amp}", f"window {recipe.accumulate}"]
    words += ["zero_grad off"] * (not recipe.zero_grad) + ["set_to_none off"] * (not recipe.set_to_none)
    return ", ".join([*words, *["checkpointing"] * checkpoint])


def _covers(family: _Family, found: Rehearsal) -> str:
    parts = [COVERS]
    if family.device == "cuda":
        parts.append("The optimizer updates all parameters at once, as it does on a GPU.")
    else:
        parts.append('The optimizer updates one parameter after another, as it does on a CPU; see device="cuda".')
    if family.recipe.amp == "fp16":
        parts.append("No gradient overflows: every step is taken.")
    if found.micro_batches < family.recipe.accumulate:
        parts.append(f"Of {family.recipe.accumulate} micro-batches {found.micro_batches} are run; the others repeat.")
    return " ".join(parts)


def _gib(count: int) -> str:
    return f"{count / 1024**3:,.2f} GiB"
