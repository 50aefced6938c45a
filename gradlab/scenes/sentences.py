"""Sentences about runs, memory and errors, for the learner, for screen readers and for saved notebooks."""

from __future__ import annotations

import gc
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from ..formatting import batches_text, bytes_text, join_words, number_of, short
from ..loop import LoopError
from ..memory import CATEGORIES, MemoryPoint
from .kinds import Memory, StatementLabel

if TYPE_CHECKING:
    from ..loop import Recipe, Run


def status_line(run: Run, *, whole: bool = True) -> str:
    """Return a line with a run's update and any loss scale and, if ``whole``, its loss, ``.grad`` and bytes."""
    parts = [f"update {run.updates:,}"]
    if whole:
        parts += [f"loss {short(run.record.loss)}"] * (run.updates > 0) + [_gradient(run)]
    if (loss_scale := run.loop.scale()) is not None:
        skipped = f", {number_of(run.record.skips, 'step')} skipped" if run.record.skips else ""
        parts.append(f"loss scale {loss_scale:,.6g}{skipped}")
    if whole:
        parts.append(f"{bytes_text(sum(run.footprint().values()))} at rest")  # the peak of an update is higher
    return " · ".join(parts)


def warning(run: Run) -> str:
    """Return a warning if the run has diverged or the newest step applied batches again, else ""."""
    reused = run.provenance.reused()
    if run.record.broken is not None:
        when = f"since update {run.record.broken:,}"
        return f"The loss is {short(run.record.loss)} {when}: this run has diverged. Reset it."
    if reused is not None and reused[0] == run.provenance.steps:
        return f"Step {reused[0]:,} applied {batches_text([reused[1]])} again: .grad was not cleared."
    return ""


_USUAL_WINDOW = 8  # largest number of batches without a step that causes no warning


def unapplied(run: Run) -> str:
    """Return a warning if more batches than usual have had a backward pass without a step, else ""."""
    count = run.loop.backwards
    if count <= max(run.loop.window, _USUAL_WINDOW):
        return ""
    batches = sum(last - first + 1 for first, last in run.provenance.contents().holds)
    grad = ".grad keeps filling" if batches > 1 else ".grad is filled and cleared"
    return f"No step() in {count:,} batches: {grad}, and no weight moves."


def _gradient(run: Run) -> str:
    contents = run.provenance.contents()
    if contents.is_none:
        return ".grad is None"
    if not contents.holds:
        return ".grad is all zeros"
    text = f"|grad| {short(contents.norm)} holds {batches_text(contents.holds)}"
    counted = (contents.holds, contents.applied, contents.reused)
    batches, applied, reused = (sum(last - first + 1 for first, last in spans) for spans in counted)
    if reused:
        oldest = contents.reused[0][0]
        text += f", {reused:,} of them reused" if reused < batches else ", reused"
        text += f": batch {oldest:,} has been applied {run.provenance.times_applied(oldest):,} times"
    elif 0 < applied < batches:
        text += f", {applied:,} of them already applied"
    return f"{text}, still times the loss scale" if run.loop.scale_in_grad() != 1.0 else text


_CPU = re.compile(r"can't allocate memory|not enough memory", re.IGNORECASE)
"""Out-of-memory messages of the CPU's allocator, which raises a plain RuntimeError."""


def find_oom(error: BaseException | None) -> BaseException | None:
    """Return the first out-of-memory error among ``error`` and its causes, or None if there is none."""
    import torch

    for cause in _causes(error):
        ran_out = isinstance(cause, (torch.cuda.OutOfMemoryError, MemoryError))
        if ran_out or (isinstance(cause, RuntimeError) and _CPU.search(str(cause))):
            return cause
    return None


def explain_oom(run: Run, error: BaseException) -> str:
    """Return sentences that name the line (or else the update) where memory ran out, and ways to continue."""
    where = f"in update {run.updates + 1:,}"
    if isinstance(error, LoopError) and 0 < error.line <= len(lines := run.source.splitlines()):
        where = f"at line {error.line}, {lines[error.line - 1].strip()}"
    return (
        f"Out of memory {where}. Try smaller batches, or a smaller model. "
        "The memory of this update is free again: change a switch or press Reset, then play."
    )


def free_after_oom(run: Run, error: BaseException) -> None:
    """Release the memory of an update that ``error`` ended: the graph, the error's frames and the allocator's cache."""
    import torch

    for cause in list(_causes(error)):
        traceback.clear_frames(cause.__traceback__)
        cause.__traceback__ = None
    for name, value in list(run.loop.namespace.items()):
        if isinstance(value, torch.Tensor) and value.grad_fn is not None:
            # an edited loop may carry the value from batch to batch; a recipe's loop computes it again
            run.loop.namespace[name] = value.detach() if run.loop.is_edited else None
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    ids: set[int] = set()
    while error is not None and id(error) not in ids:
        ids.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


_CALLS = frozenset(map(StatementLabel, ("zero_grad", "backward", "step", "update", "unscale_", "clip_grad_norm_")))
"""Labels of statements that are named after a call; others are named after their target or keyword."""
_WORTH = 0.05  # share of the peak that a category must exceed before ways to reduce the category are named


def peak_location(statement: str, module: str = "") -> str:
    """Return a phrase for the statement and the module of a peak, such as ``while backward ran, in head``."""
    when = f"while {statement} ran" if statement in _CALLS else f"at {statement}"
    kind = "module " if module.isdigit() else ""  # the parts of a Sequential have numbers for names
    return f"{when}, in {kind}{module}" if module else when


def share_of_gpu(card: str, holds: float, peak: float) -> str:
    """Return a phrase on the use of a card's memory at a peak, such as ``T4 holds 15 GiB: 30 % used at the peak``."""
    if peak > holds > 0:
        return f"{card} holds {bytes_text(holds)}: the peak needs {times_as_much(peak / holds)} that"
    return f"{card} holds {bytes_text(holds)}: {percent(peak / holds if holds else 0.0)} used at the peak"


def percent(share: float) -> str:
    """Return ``share`` as a rounded percentage, such as ``120 %``, ``27 %``, ``0.003 %`` or ``under 0.001 %``."""
    value = share * 100
    if value >= 99.5 or value == 0:
        return f"{value:.0f} %"
    if value < 0.0005:
        return "under 0.001 %"
    return f"{value:.0f} %" if value >= 10 else f"{float(f'{value:.1g}'):g} %"


def times_as_much(ratio: float) -> str:
    """Return a ratio above 1 as a phrase, such as ``1.3 times`` or ``82 times``, but at least ``1.01 times``."""
    if ratio >= 9.95:
        return f"{ratio:,.0f} times"
    return f"{ratio:.2g} times" if ratio >= 1.1 else f"{max(ratio, 1.01):.2f} times"


def need_sentence(what: str, tensors: int, total: int, statement: str, module: str = "") -> str:
    """Return a sentence on the memory that ``what`` needs: ``llama-8b needs 151 GiB: 131 GiB of tensors at ...``."""
    return (
        f"{what} needs {bytes_text(total)}: {bytes_text(tensors)} of tensors at the peak "
        f"({peak_location(statement, module)}) and {bytes_text(total - tensors)} more for PyTorch's allocator and CUDA"
    )


def fit_sentence(card: str, usable: int, needed: int) -> str:
    """Return whether ``needed`` bytes fit a card, as a phrase such as ``fits an H100: 27 % of its 79 GiB``."""
    share = f"{percent(needed / usable)} of" if needed <= usable else times_as_much(needed / usable)
    return f"{'fits' if needed <= usable else 'does not fit'} {with_article(card)}: {share} its {bytes_text(usable)}"


def suggestions(
    at_peak: Mapping[str, int], room: int, recipe: Recipe, *, statement: str, checkpoint: bool, batch: int
) -> str:
    """Return a sentence that lists ways to lower a peak above ``room`` bytes, best first, or says why none helps."""
    weights = at_peak.get("weights", 0)
    both = weights + at_peak.get("gradients", 0)
    for what, size in (("The weights", weights), ("Weights and gradients", both)):
        if size > room:
            return f"{what} alone are {bytes_text(size)}: one such card has room for {bytes_text(room)} of tensors."
    smaller = ["checkpointing"] * (not checkpoint) + ["AMP"] * (recipe.amp == "off")
    smaller.append("a smaller batch and a larger accumulate" if batch > 1 else "a shorter context")
    ideas = {"activations": f"{join_words(smaller, 'or')} (activations: {{}})"}
    if recipe.optimizer != "sgd":
        ideas["optimizer"] = "sgd, which keeps no state (optimizer: {})"
    if not recipe.set_to_none and statement != StatementLabel.STEP:
        ideas["gradients"] = "set_to_none, so that the old gradients are gone before forward (gradients: {})"
    if statement == StatementLabel.STEP and recipe.optimizer in ("adam", "adamw"):
        ideas["other"] = "foreach=False, so that the optimizer needs no copy of all weights at once (other: {})"
    peak = sum(at_peak.values())
    worth = [name for name in sorted(ideas, key=lambda n: -at_peak.get(n, 0)) if at_peak.get(name, 0) > _WORTH * peak]
    if not worth:
        return f"Nearly all of it is weights, gradients and optimizer state: {bytes_text(both + at_peak['optimizer'])}."
    return f"What would help: {'; '.join(ideas[name].format(bytes_text(at_peak[name])) for name in worth)}."


def with_article(card: str) -> str:
    """Return the name of a card with the indefinite article, such as ``a T4`` or ``an H100``."""
    return f"{'an' if card[:1] in 'AEFHILMNORSX' else 'a'} {card}"


_MOST_UPDATES = 2
_MOST_STATEMENTS = 130  # maximum number of statements in several updates, so that each is at least two pixels wide


def memory_scene(updates: Sequence[tuple[int, Sequence[MemoryPoint]]], note: str = "") -> Memory:
    """Return a Memory of ``updates``, pairs of number and timeline, with two points per interval: its peak and its end.

    Only the newest ``_MOST_UPDATES`` updates are included, or fewer if these have too many statements together.
    """
    key, newest = attrgetter("number", "statement"), updates[-_MOST_UPDATES:]
    ran = [(update, [list(group) for _, group in groupby(timeline, key)]) for update, timeline in newest]
    while len(ran) > 1 and sum(len(statements) for _, statements in ran) > _MOST_STATEMENTS:
        ran.pop(0)
    starts, firsts = list[int](), list[tuple[int, int]]()
    points = list[MemoryPoint]()
    for update, statements in ran:
        firsts.append((len(starts), update))
        for intervals in statements:
            starts.append(2 * len(points))
            points += intervals
    labels = [points[start // 2].statement for start in starts]
    categories: dict[str, Sequence[int]] = {
        name: [size for p in points for size in (p.high[name], p.bytes[name])] for name in CATEGORIES
    }
    return Memory(labels, starts, categories, firsts, [p.module for p in points for _ in range(2)], note=note)
