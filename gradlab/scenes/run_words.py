"""The run in words: one line for the reader, the screen reader and the saved notebook; and where memory ran out."""

from __future__ import annotations

import gc
import math
import re
import traceback
from collections.abc import Iterator

import torch
from torch import Tensor

from ..formatting import batches_text, bytes_text, number_of, share_of_sum, short
from ..gradients import Contributions
from ..loop import LoopError, Run


def status_line(run: Run, measured: Contributions | None = None) -> str:
    """Say where the run is: update, loss, what ``.grad`` holds, bytes between updates, and what has gone wrong.

    ``measured`` are the contributions to ``.grad`` at this very moment, where they are known.
    """
    parts = [f"update {run.updates:,}", _loss(run), _gradient(run, measured)]
    if (loss_scale := run.loop.scale()) is not None:
        skips = run.record.skips
        words = f", {number_of(skips, 'step')} skipped" if skips else ""
        parts.append(f"loss scale {loss_scale:,.6g}{words}")
    parts.append(f"{bytes_text(sum(run.footprint().values()))} at rest")  # the peak of an update is more
    return " · ".join(part for part in parts if part)


def warning(run: Run) -> str:
    """Say what the newest step did wrong, "" if nothing: it applied batches again, or the loss is lost."""
    reused = run.provenance.reused()
    if run.record.broken is not None:
        when = f"since update {run.record.broken:,}"
        return f"The loss is {short(run.record.loss)} {when}: this run has diverged. Reset it."
    if reused is not None and reused[0] == run.provenance.steps:
        return f"Step {reused[0]:,} applied {batches_text([reused[1]])} again: .grad was not cleared."
    return ""


def _loss(run: Run) -> str:
    return "" if run.updates == 0 else f"loss {short(run.record.loss)}"


def _gradient(run: Run, measured: Contributions | None) -> str:
    now = run.provenance.contents()
    if all(param.grad is None for param in run.provenance.params):
        return ".grad is None"
    if not now.holds:
        return ".grad is all zeros"
    words = f"|grad| {short(now.norm)} holds {batches_text(now.holds)}"
    held, leftover = (sum(last - first + 1 for first, last in these) for these in (now.holds, now.leftover))
    if leftover:
        words += f", {leftover:,} of them already applied" if leftover < held else ", already applied"
    if held > 1:
        measured = measured or run.provenance.contributions()
    if held > 1 and measured is not None and measured.parts and math.isfinite(measured.parts[-1].share):
        words += f"; the newest is {share_of_sum(measured.parts[-1].share)}"
    return f"{words}, still times the loss scale" if run.loop.scale_in_grad() != 1.0 else words


_ASKED = re.compile(r"Tried to allocate ([\d.]+) (bytes|[KMGT]iB)")
_CPU = re.compile(r"can't allocate memory|not enough memory", re.IGNORECASE)
"""How the allocator of the CPU says it; it has no exception of its own."""


def find_oom(error: BaseException | None) -> BaseException | None:
    """Return what said that memory ran out, the error itself or one that led to it; None if memory did not."""
    for one in _causes(error):
        ran_out = isinstance(one, (torch.cuda.OutOfMemoryError, MemoryError))
        if ran_out or (isinstance(one, RuntimeError) and _CPU.search(str(one))):
            return one
    return None


def explain_oom(run: Run, error: BaseException) -> str:
    """Say where memory ran out, what was alive then by category, and what to try; call it before ``free_after_oom``."""
    module = _module(run, error)
    alive, highest, whole = _alive(run, in_forward=bool(module))
    module = module or highest
    where = f"in update {run.updates + 1:,}"
    if isinstance(error, LoopError) and 0 < error.line <= len(lines := run.source.splitlines()):
        where = f"at line {error.line}, {lines[error.line - 1].strip()}"
    words = [f"Out of memory {where}{f', in {module}' if module else ''}."]
    if asked := _ASKED.search(str(find_oom(error))):
        words.append(f"{asked[1]} {asked[2]} more could not be had.")
    parts = [f"{name} {bytes_text(size)}" for name, size in sorted(alive.items(), key=lambda p: -p[1]) if size]
    if parts:
        words.append(f"Alive {'then' if whole else 'of what the loop keeps'}: {', '.join(parts)}.")
    words.append(
        f"{_suggestions(run, alive)} The memory of this update is free again: turn a switch or reset, and play on."
    )
    return " ".join(words)


def free_after_oom(run: Run, error: BaseException) -> None:
    """Let go of what the update that failed still holds: its graph, the frames of the error, the allocator's cache."""
    for one in list(_causes(error)):
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = None
    for name, value in list(run.loop.namespace.items()):
        if isinstance(value, Tensor) and value.grad_fn is not None:
            # a loop of the learner's own may carry it from batch to batch; the recipe's makes it anew
            run.loop.namespace[name] = value.detach() if run.loop.is_edited else None
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _alive(run: Run, *, in_forward: bool) -> tuple[dict[str, int], str, bool]:
    """Return bytes by category when memory ran out, the module at work, and whether that is all there was."""
    if run.ledger is not None and run.watched and run.watched[-1][0] == run.updates + 1:
        # In forward the frames of the error still hold everything; in backward autograd has begun to let go.
        alive = run.ledger.by_category if in_forward else run.ledger.at_peak
        return alive, run.ledger.peak_at.module, True
    alive = run.footprint()  # nobody watched this update
    if run.task.device.startswith("cuda"):
        alive["activations and others"] = max(torch.cuda.memory_allocated() - sum(alive.values()), 0)
    return alive, "", run.task.device.startswith("cuda")


def _module(run: Run, error: BaseException) -> str:
    """Return the name of the innermost module in the frames of the error, "" outside of forward."""
    names = {id(module): name for name, module in run.model.named_modules()}
    inner = ""
    for one in _causes(error):
        for frame, _ in traceback.walk_tb(one.__traceback__):
            inner = names.get(id(frame.f_locals.get("self")), "") or inner
    return inner


def _suggestions(run: Run, alive: dict[str, int]) -> str:
    """Propose the switches that make the largest categories smaller."""
    recipe = run.recipe
    ideas = {
        "activations": ("AMP or " if recipe.amp == "off" else "") + "smaller batches and a larger accumulate",
        "gradients": "" if recipe.zero_grad and recipe.set_to_none else "zero_grad with set_to_none",
        "optimizer": "" if recipe.optimizer == "sgd" else "sgd, which keeps no state",
    }
    ideas["activations and others"] = ideas["activations"]
    largest = sorted((name for name in ideas if ideas[name] and alive.get(name)), key=lambda name: -alive[name])
    tries = "; ".join(ideas[name] for name in largest) or "smaller batches, or a smaller model"
    return f"Try: {tries}."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
