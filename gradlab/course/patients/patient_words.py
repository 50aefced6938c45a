"""What is said of a patient's run, the same in the live view and in the still picture."""

from __future__ import annotations

from ...doctor import Finding
from ...formatting import batches_text, number_of, short
from .loop_history import LoopHistory
from .run_loop import LoopOutcome


def run_words(which: str, outcome: LoopOutcome) -> str:
    """Return how many updates a run made, and how loss and norm changed over them."""
    rows = outcome.history.first
    if not rows:
        return f"{which.capitalize()}: no update was seen."
    named = f" of {rows[0].optimizer}" if rows[0].optimizer else ""
    first, last = rows[0], rows[-1]
    many = f"{number_of(len(rows), 'update')}{named}"
    return (
        f"{which.capitalize()}: {many}. The loss {_change(first.loss, last.loss)}, "
        f"the norm of .grad {_change(first.norm, last.norm)}."
    )


def _change(first: float, last: float) -> str:
    one, other = short(first), short(last)
    return f"is {one}" if one == other else f"goes from {one} to {other}"


def gradient_words(history: LoopHistory, number: int) -> str:
    """Return what `.grad` held at an update, "" where that was not measured."""
    if number not in history.gradients:
        return ""
    scene = history.gradients[number]
    if not scene.holds:
        return f"At update {number:,} .grad holds no batch."
    stale = sum(arrow.share for arrow in scene.arrows if arrow.stale)
    had = any(arrow.stale for arrow in scene.arrows)
    much = "over 99%" if 0.995 <= stale < 1 else f"{stale:.0%}"  # what is nearly all is not written as all
    used = f"; {much} of it is from batches that a step had applied already" if had else "; all of it is fresh"
    return f"At update {number:,} .grad holds {batches_text(scene.holds)}{used}."


def place_to_edit(finding: Finding) -> int:
    """Return the line to edit, or the one where it was seen if that is not known."""
    return finding.cause.line if finding.cause is not None and finding.cause.file == finding.file else finding.line


def what_to_do(finding: Finding) -> str:
    """Return what to do at the line to edit: "edit", or "insert above" or "insert below" where a line is missing."""
    there = finding.cause is not None and finding.cause.file == finding.file and finding.cause.insert
    return f"insert {there}" if there else "edit"


def fix_words(finding: Finding) -> str:
    """Return the fix and its place: "Insert above line 5: optimizer.zero_grad()", "Line 8: Take one of them out."."""
    do, line = what_to_do(finding), place_to_edit(finding)
    return f"{'Line' if do == 'edit' else f'{do.capitalize()} line'} {line}: {finding.fix}"


def line_to_edit(outcome: LoopOutcome) -> int:
    """Return the line that the gravest finding asks to edit, or that of the trouble; 0 where there is neither."""
    here = (place_to_edit(finding) for finding in outcome.wrong if finding.file.startswith("<loop "))
    return next(here, outcome.line)


def finding_head(finding: Finding) -> str:
    """Return who says it, how grave it is, where it was seen and which line to edit."""
    where = f", line {finding.line}" if finding.line else ""
    place = place_to_edit(finding)
    do = what_to_do(finding)
    edit = f", {do} line {place}" if place != finding.line or do != "edit" else ""
    return f"The doctor ({finding.severity}{where}{edit}):"


def finding_seen(finding: Finding) -> str:
    """Return what is wrong and where it shows, without the fix."""
    return f"{finding.message} Seen: {finding.evidence}."
