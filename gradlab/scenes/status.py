"""The run in words: one line for the reader, the screen reader and the saved notebook."""

from __future__ import annotations

import math

from ..formatting import batches_text, bytes_text, number_of, share_of_sum, short
from ..gradients import Contributions
from ..loop import Run


def status_line(run: Run, measured: Contributions | None = None) -> str:
    """Say where the run is: update, loss, what ``.grad`` holds, bytes between updates, and what has gone wrong.

    ``measured`` are the contributions to ``.grad`` at this very moment, where they are known.
    """
    parts = [f"update {run.updates:,}", _loss(run), _gradient(run, measured)]
    if run.loss_scale is not None:
        skips = run.record.skips
        words = f", {number_of(skips, 'step')} skipped" if skips else ""
        parts.append(f"loss scale {run.loss_scale:,.6g}{words}")
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
    return f"{words}, still times the loss scale" if run.scale_in_grad != 1.0 else words
