"""Whether an order trains as the usual loop does, and why: from two runs and the account of ``.grad``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ...formatting import EN_DASH, number_of, short, spans_text
from .ring_trial import USUAL, Grad, LoopCall, Setup, Trial, count

RIGHT, HARMLESS, WRONG, ERROR = "right", "harmless", "wrong", "error"
MOST_LATE = 2
"""Updates by which a loop may lag behind the usual one and still count as the same."""


@dataclass(frozen=True)
class OrderVerdict:
    """What came of a trial, in a word and in sentences."""

    word: str
    """"right", "harmless", "wrong" or "error"."""
    outcome: str
    """What came of it, in a few words."""
    result: str
    """What was compared, with its numbers."""
    why: str
    """The reason, from what was in ``.grad`` at each step."""

    @property
    def trains(self) -> bool:
        """Whether it does what the usual loop does."""
        return self.word in (RIGHT, HARMLESS)


@dataclass(frozen=True)
class OrderRun:
    """An order that was run: its trial, the usual loop beside it, and the verdict on it."""

    trial: Trial
    usual: Trial
    judged: OrderVerdict

    @property
    def order(self) -> str:
        """The calls with spaces between them."""
        return self.trial.setup.order

    @property
    def loss(self) -> float:
        """The newest loss on held-out digits."""
        return self.trial.losses[-1]

    @property
    def verdict(self) -> str:
        """The verdict in a word: "right", "harmless", "wrong" or "error"."""
        return self.judged.word

    @property
    def why(self) -> str:
        """The reason in a sentence or two."""
        return self.judged.why

    @property
    def outcome(self) -> str:
        """What came of it in a few words: "the weights never move"."""
        return self.judged.outcome

    @property
    def result(self) -> str:
        """What came of it, with its numbers, or the error."""
        return self.judged.result

    @property
    def code(self) -> str:
        """The text that was run."""
        return self.trial.text


def usual_setup(setup: Setup) -> Setup:
    """Return the setup of the usual loop to compare with: the same optimizer, clearing and model."""
    return replace(setup, order=USUAL, first_loss=False)


def judge_order(trial: Trial, usual: Trial) -> OrderVerdict:
    """Hold the weights of a trial, turn by turn, against those of the usual loop on the same batches."""
    if trial.error is not None:
        raised = trial.error.problem.partition(":")[0]
        return OrderVerdict(ERROR, f"{raised} in turn {trial.turns + 1}", _error(trial), _why_error(trial))
    beside = f"loss {short(trial.losses[-1])} after {trial.turns} turns, the usual loop {short(usual.losses[-1])}"
    if len(set(trial.prints)) == 1:
        return OrderVerdict(WRONG, "the weights never move", f"The weights never move: {beside}", _why_still(trial))
    late = updates_late(trial, usual)
    if late == 0:
        same = f"The same weights as the usual loop after each of {trial.turns} turns, bit for bit: "
        result = f"{same}loss {short(trial.losses[-1])}"
        return OrderVerdict(RIGHT, "the weights of the usual loop", result, _why_right(trial))
    if late is not None:
        outcome = f"the weights of the usual loop, {number_of(late, 'update')} late"
        return OrderVerdict(HARMLESS, outcome, f"T{outcome[1:]}: {beside}", _why_right(trial))
    result = f"The weights differ from those of the usual loop: {beside}"
    if not (troubles := _troubles(trial)):
        return OrderVerdict(HARMLESS, "other weights, sound updates", result, _why_right(trial))
    if trial.losses[-1] < usual.losses[-1]:
        troubles.append("A lower loss does not make it right: these are not the steps that the lr asks for.")
    return OrderVerdict(WRONG, "other weights", result, " ".join(troubles))


def updates_late(trial: Trial, usual: Trial) -> int | None:
    """Return by how many updates the trial has the weights of the usual loop later, None where they are others."""
    for late in range(MOST_LATE + 1):
        shifted = [usual.prints[max(turn - late, 0)] for turn in range(len(usual.prints))]
        if list(trial.prints) == shifted:
            return late
    return None


def grad_text(grad: Grad) -> str:
    """Say what is in ``.grad``: ``None``, ``zeros``, ``backwards 1-3 (1-2 applied), norm 0.58``."""
    if grad.kind == "None":
        return "None"
    if not grad.holds:
        return "zeros"
    marked = [
        f"{'' if some == grad.holds else f'{spans_text(some, EN_DASH)} '}{word}"
        for word, some in (("applied", grad.stale), ("outdated", grad.outdated))
        if some
    ]
    said = f" ({', '.join(marked)})" if marked else ""
    return f"backward{'s' if grad.count > 1 else ''} {spans_text(grad.holds, EN_DASH)}{said}, norm {short(grad.norm)}"


def call_text(call: LoopCall) -> str:
    """Say what a call did to ``.grad`` or to the weights."""
    if call.failed:
        return "raises an error"
    if call.piece == "zero_grad":
        return f"clears {spans_text(call.before.holds, EN_DASH)}" if call.before.holds else "nothing to clear"
    if call.piece == "forward":
        return f"loss of batch {call.batch}"
    if call.piece == "backward":
        return f"adds {call.added}"
    if call.before.kind == "None":
        return "does nothing"
    if not call.before.holds:
        return "applies zeros and moves on" if call.moved else "applies zeros"
    again = f" ({spans_text(call.before.stale, EN_DASH)} again)" if call.before.stale else ""
    outdated = " (outdated)" if call.age else ""
    return f"applies {spans_text(call.before.holds, EN_DASH)}{again}{outdated}"


def _error(trial: Trial) -> str:
    assert trial.error is not None
    said = trial.error.problem.split(": [")[0].split(" (or ")[0]
    return f"Turn {trial.turns + 1}, line {trial.error.line}: {said}"


def _why_error(trial: Trial) -> str:
    turn = trial.turns + 1
    if "forward" not in trial.setup.pieces and not trial.setup.has_first_loss:
        return "Nothing computes a loss, so `backward()` has nothing to start from."
    if trial.used:
        return (
            f"In turn {turn} `backward()` goes through the same loss a second time. "
            "The first pass has freed the saved tensors."
        )
    if trial.in_place:
        zeros = " (even zeros are subtracted in place)" if trial.steps[-1].before.kind == "zeros" else ""
        return (
            f"In turn {turn} `step()` writes to the weights between the forward and its `backward()`{zeros}. "
            "`backward()` needs the weights of the forward, so PyTorch refuses."
        )
    return f"In turn {turn} `backward()` comes before the first forward: there is no loss yet."


def _why_still(trial: Trial) -> str:
    lost = sum(call.before.fresh for call in trial.calls if call.piece == "zero_grad")
    made = [call for call in trial.calls if call.piece == "backward"]
    if not trial.steps:
        return "No `step()` is called, so nothing moves the weights."
    if not made:
        return "No `backward()` is called: `.grad` stays None, and `step()` has nothing to apply."
    found = "None" if all(step.before.kind == "None" for step in trial.steps) else "no gradient"
    return (
        f"All {len(trial.steps)} steps find {found} in `.grad`: {lost} of {len(made)} gradients were cleared "
        "before a step could apply them."
    )


def _why_right(trial: Trial) -> str:
    steps = [step for step in trial.steps if step.before.holds]
    idle = [step for step in trial.steps if not step.before.holds]
    said = [f"{number_of(len(steps), 'step')}: each applies one fresh gradient, taken at the weights of that moment."]
    if any(step.turn == 1 and step.before.kind == "None" for step in idle[:1]):
        said.append("In turn 1 a `step()` finds None in `.grad` and does nothing.")
        idle = idle[1:]
    if idle:
        said.append(f"{number_of(len(idle), 'more step')} {'finds' if len(idle) == 1 else 'find'} nothing to apply.")
    if len(steps) > trial.turns:
        said.append(f"But {len(steps)} updates are made of {trial.turns} batches.")
    lost = sum(call.before.fresh for call in trial.calls if call.piece == "zero_grad")
    if lost:
        said.append(f"{number_of(lost, 'gradient')} {'is' if lost == 1 else 'are'} computed and cleared without use.")
    passes = sum(call.piece == "forward" for call in trial.calls)
    unused = passes - sum(call.piece == "backward" for call in trial.calls)
    if unused >= trial.turns:
        said.append(f"{unused} of {passes} forward passes are never used.")
    return " ".join(said)


def _troubles(trial: Trial) -> list[str]:
    """Return what is wrong with the steps, the worst first; none for a loop whose every update is sound."""
    steps, said = trial.steps, []
    of = f"of {len(steps)} steps"
    again = [step for step in steps if step.before.stale]
    if again:
        last = again[-1].before
        said.append(
            f"{len(again)} {of} apply a gradient that was applied before. The last of them finds "
            f"{number_of(last.count, 'gradient')} in `.grad`, {count(last.stale)} of them stale."
        )
    several = [step for step in steps if step.before.fresh > 1]
    if several:
        most = max(step.before.fresh for step in several)
        said.append(f"{len(several)} {of} apply {most} fresh gradients at once, so they move {most} times as far.")
    old = [step for step in steps if step.age]
    if old:
        age = max(step.age for step in old)
        said.append(
            f"{len(old)} {of} apply an outdated gradient: the weights have moved {_times(age)} since its forward."
        )
    coasting = [step for step in steps if step.moved and not step.before.holds]
    if coasting:
        said.append(f"{len(coasting)} {of} find zeros and still move the weights, because the optimizer remembers.")
    return said


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def is_broken(losses: tuple[float, ...]) -> bool:
    """Whether a loss is inf or NaN."""
    return not all(map(math.isfinite, losses))
