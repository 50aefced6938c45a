"""Two ranks in words: what has just happened, with its numbers, and what the settings lead to."""

from __future__ import annotations

from ....formatting import short
from .loop import SAMPLES_EACH, LoopSettings
from .message_panel import count_text
from .moments import Moment
from .panels import vector_text


def state_text(moment: Moment, settings: LoopSettings) -> str:
    """Say what the newest statement did in both ranks."""
    if moment.statement == "start":
        return "Both ranks start with the same weights, and with no .grad."
    where = f"Update {moment.update} of {settings.updates}"
    if moment.statement == "zero_grad":
        return f"{where}, zero_grad: {_cleared(moment, settings)}"
    if moment.statement == "step":
        return f"{where}, step: {_moved(moment)} {count_text(moment)} so far."
    of = f" of micro-batch {moment.micro}" if settings.accumulate > 1 else ""
    if moment.statement == "backward":
        return f"{where}, backward{of}: before any message, {_held(moment)}."
    if moment.quiet:
        within = f"micro-batch {moment.micro} is inside no_sync()"
        return f"{where}, {within}: nothing is sent, {_held(moment)}.{_beside_one(moment, settings)}"
    sent = sum(message.bytes for message in moment.messages if message.moment == moment.number)
    mean = vector_text(moment.ranks[0].grad or (0.0, 0.0))
    said = f"each rank hands in {sent} bytes, and both get the mean: .grad is {mean}."
    return f"{where}, all-reduce{of}: {said}{_beside_one(moment, settings)}"


def note_text(settings: LoopSettings) -> str:
    """Say what these settings lead to, and why."""
    notes = []
    drifts = settings.accumulate > 1 and settings.no_sync == "all but the first"
    if settings.forgets != "none" and not drifts:
        part, beta = ("all", "1") if settings.forgets == "both" else ("half", "0.5")
        notes.append(
            "Both ranks step with the same mean, so their weights stay equal, and comparing them finds nothing. "
            f"The mean still holds {part} of the old one: this is momentum {beta}."
        )
    if drifts:
        notes.append(
            "Only the first micro-batch is averaged. What the others add stays in its own rank, so the weights drift "
            "apart, and nothing raises an error."
        )
    elif settings.accumulate > 1 and settings.no_sync == "off":
        notes.append("Every backward() ends in an all-reduce; only the last one before step() is needed.")
    elif settings.accumulate > 1:
        notes.append(f"One all-reduce for each update instead of {settings.accumulate}, and the same .grad at step().")
    if settings.batches == "12 and 4":
        notes.append(
            "Each rank's mean has half the say: a sample of rank 1 counts three times as much as one of rank 0."
        )
    elif settings.batches == "12 and 4, weighted":
        notes.append("Each loss is weighted by its number of samples: every sample counts the same.")
    return " ".join(notes)


def _cleared(moment: Moment, settings: LoopSettings) -> str:
    if settings.forgets == "none":
        return "both ranks clear .grad."
    who = "rank 0 clears .grad, rank 1 forgets" if settings.forgets == "rank 1" else "both ranks forget it"
    return f"{who}: {_held(moment)}." if moment.ranks[1].grad else f"{who}, and there is nothing to clear yet."


def _held(moment: Moment) -> str:
    zero, one = (vector_text(rank.grad) if rank.grad else "None" for rank in moment.ranks)
    return f".grad is {zero} in rank 0 and {one} in rank 1"


def _moved(moment: Moment) -> str:
    zero, one = (rank.path[-1] for rank in moment.ranks)
    if moment.apart == 0:
        return f"the weights of both ranks are {vector_text(zero)}."
    return f"rank 0 is at {vector_text(zero)}, rank 1 at {vector_text(one)}: {short(moment.apart)} apart."


def _beside_one(moment: Moment, settings: LoopSettings) -> str:
    """Compare with one process, once the window is complete."""
    if not moment.complete:
        return ""
    rank = moment.ranks[0]
    who = f" One process with all {SAMPLES_EACH * settings.accumulate} samples would have"
    if rank.off < 1e-3:
        return f"{who} the same."
    of = "rank 0" if moment.apart or moment.quiet else ".grad"
    return f"{who} {vector_text(rank.whole)}: {of} is off by {rank.off:.0%}."
