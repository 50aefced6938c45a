"""Trials of a training loop with its calls in any order: ``.grad`` before and after each call, and the verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from ..._process import main_thread
from ...formatting import EN_DASH, number_of, short, spans_text
from ...gradients import Provenance, union
from ...loop import LoopError, Program
from ...tasks import digits

PIECES = ("zero_grad", "forward", "backward", "step")
USUAL = " ".join(PIECES)
TURNS = 60  # number of iterations of the loop, each with its own batch
_OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters(), lr=0.2)"  # at this lr, the usual loop's loss is smooth
_LINES = {
    "zero_grad": "optimizer.zero_grad()",
    "forward": "loss = loss_fn(model(x), y)",
    "backward": "loss.backward()",
    "step": "optimizer.step()",
}
_MOST_LATE = 2  # number of updates by which a harmless loop may lag behind the usual loop
_task = cache(partial(digits, batch=24, device="cpu"))


@dataclass(frozen=True)
class Grad:
    """The contents of ``.grad`` at one moment: the backward passes whose gradients it holds. Empty if it is None."""

    times: Mapping[int, int]  # index of a backward pass -> number of steps that have applied its gradient
    norm: float = 0.0

    def numbers(self, least: int = 0) -> str:
        """Return the indices of the gradients that ``least`` or more steps have applied, as text such as ``1-3, 5``."""
        return spans_text(union((number, number) for number, times in self.times.items() if times >= least), EN_DASH)

    def count(self, least: int) -> int:
        """Return the number of gradients in ``.grad`` that at least ``least`` steps have applied."""
        return sum(times >= least for times in self.times.values())

    @property
    def text(self) -> str:
        """The contents of ``.grad`` as text, such as ``None`` or ``gradients 1-3 (1-2 applied), norm 0.58``."""
        if not self.times:
            return "None"
        numbers, verb = (self.numbers(2), "applied again") if self.count(2) else (self.numbers(1), "applied")
        applied = f" ({'' if numbers == self.numbers() else f'{numbers} '}{verb})" if numbers else ""
        return f"{self.named}{applied}, norm {short(self.norm)}"

    @property
    def named(self) -> str:
        """The indices of the gradients as text, such as ``gradients 1-3``, or "" if there are none."""
        return f"gradient{'s' if len(self.times) > 1 else ''} {self.numbers()}" if self.times else ""


@dataclass(frozen=True)
class LoopCall:
    """One call in the loop, with ``.grad`` right before and right after it."""

    turn: int
    index: int  # position in the order, from 0
    piece: str
    line: int  # line of the source, from 1
    before: Grad
    after: Grad
    number: int = 0  # number of the batch (forward) or of the pass (backward), from 1; 0 for other calls
    failed: bool = False

    @property
    def text(self) -> str:
        """The effect of the call, such as ``applies gradients 1-3 (1-2 again)``."""
        every, again = self.before.named, self.before.numbers(1)
        texts = {
            "zero_grad": f"clears {every}" if every else "nothing to clear",
            "forward": f"loss of batch {self.number}",
            "backward": f"adds gradient {self.number}",
            "step": f"applies {every}" + f" ({again} again)" * bool(again) if every else "finds None, moves nothing",
        }
        return "raises an error" if self.failed else texts[self.piece]


@dataclass(frozen=True)
class Trial:
    """The record of a loop that was run to its end or to its first error."""

    order: str
    source: str
    calls: tuple[LoopCall, ...]
    losses: tuple[float, ...]  # losses on held-out digits, before the loop and after each completed turn
    weight_hashes: tuple[bytes, ...]  # a hash of all weights at the moment of each loss
    weights: Tensor  # all weights at the end, as a 1-D tensor
    error: LoopError | None = None

    @property
    def turns(self) -> int:
        """The number of iterations that the loop completed."""
        return len(self.losses) - 1

    def ran(self, piece: str) -> list[LoopCall]:
        """Return the calls to ``piece``, such as "step", that raised no error."""
        return [call for call in self.calls if call.piece == piece and not call.failed]


@dataclass(frozen=True)
class OrderRun:
    """The trial of an order, the trial of the usual order, and the verdict from comparing the weights of both."""

    trial: Trial
    usual: Trial
    verdict: str  # "right", "harmless", "wrong" or "error"
    outcome: str  # the verdict in a few words, such as "the weights never move"
    result: str  # the comparison in one sentence with numbers, or the error
    why: str  # the reason for the verdict, from the contents of ``.grad`` at each step


def run_and_judge(order: str) -> OrderRun:
    """Run an order and the usual order, and return the OrderRun with the verdict."""
    trial, usual = run_trial(order), run_trial(USUAL)
    return OrderRun(trial, usual, *_judge(trial, usual))


@lru_cache(maxsize=128)
def run_trial(order: str) -> Trial:
    """Return the Trial of a loop that starts from fixed weights, on fixed batches, and ends early if a call fails."""
    model, lines = _task().build(seed=0), [f"    {_LINES[piece]}" for piece in order.split()]
    source = "\n".join([_OPTIMIZER, "", "for x, y in batches:", *lines, ""])
    loss_fn, (x, y) = _task().loss_fn, _task().held_out or (None, None)
    names: dict[str, Any] = {"torch": torch, "model": model, "loss_fn": loss_fn, "batches": _task().batches[:TURNS]}
    program, pieces = Program(source), order.split()
    body = len(source.splitlines()) - len(pieces) + 1  # line number of the first call in ``source``
    calls, losses, hashes = list[LoopCall](), list[float](), list[bytes]()
    error = None
    with main_thread.hold(), torch.enable_grad():
        provenance = Provenance(model.named_parameters())

        def end_turn() -> None:
            with torch.no_grad():
                losses.append(float(loss_fn(model(x), y)))
                row = parameters_to_vector(model.parameters()) + 0.0  # turns -0.0 into 0.0
            hashes.append(hashlib.sha256(row.numpy().tobytes()).digest())

        def note(line: int, failed: bool = False) -> None:
            piece, turn = pieces[line - body], len(losses)
            number = {"forward": turn, "backward": provenance.backwards}.get(piece, 0)
            before, contents = calls[-1].after if calls else Grad({}), provenance.contents()
            numbers = (n for first, last in contents.holds for n in range(first, last + 1))
            after = Grad({n: provenance.times_applied(n) for n in numbers}, contents.norm)
            calls.append(LoopCall(turn, line - body, piece, line, before, after, number, failed))

        try:
            list(program.setup(names))
            provenance.watch([names["optimizer"]])
            for statement in program.loop(names):
                line = program.statements[statement].line
                if line < body:  # the ``for`` line has taken the next batch
                    end_turn()
                else:
                    note(line)
            end_turn()
        except (NameError, RuntimeError) as raised:
            error = program.explain(raised)
            note(error.line, failed=True)
        finally:
            provenance.close()
    weights = parameters_to_vector(model.parameters()).detach()
    return Trial(order, source, tuple(calls), tuple(losses), tuple(hashes), weights, error)


def _judge(trial: Trial, usual: Trial) -> tuple[str, str, str, str]:
    """Return the ``verdict``, ``outcome``, ``result`` and ``why`` of an OrderRun, from the weights of two trials."""
    if trial.error is not None:
        raised, turn = trial.error.problem.partition(":")[0], trial.turns + 1
        problem = trial.error.problem.split(": [")[0].split(" (or ")[0]
        result = f"Turn {turn}, line {trial.error.line}: {problem}"
        return "error", f"{raised} in turn {turn}", result, _why_error(trial)
    beside = f"loss {short(trial.losses[-1])} after {trial.turns} turns, the usual loop {short(usual.losses[-1])}"
    if len(set(trial.weight_hashes)) == 1:
        return "wrong", "the weights never move", f"The weights never move: {beside}", _why_still(trial)
    hashes = usual.weight_hashes
    shifted = [(hashes[:1] * late + hashes)[: len(hashes)] for late in range(_MOST_LATE + 1)]
    # the number of updates by which the trial lags behind the usual loop, or None if no lag fits
    late = shifted.index(trial.weight_hashes) if trial.weight_hashes in shifted else None
    if late == 0:
        same = f"The same weights as the usual loop after each of {trial.turns} turns, bit for bit"
        return "right", "the weights of the usual loop", f"{same}: loss {short(trial.losses[-1])}", _why_right(trial)
    if late is not None:
        outcome = f"the weights of the usual loop, {number_of(late, 'update')} late"
        return "harmless", outcome, f"T{outcome[1:]}: {beside}", _why_right(trial)
    result = f"The weights differ from those of the usual loop: {beside}"
    if not (troubles := _troubles(trial)):
        return "harmless", "other weights, sound updates", result, _why_right(trial)
    if trial.losses[-1] < usual.losses[-1]:
        troubles.append("A lower loss does not make it right: these are not the steps that the lr asks for.")
    return "wrong", "other weights", result, " ".join(troubles)


def _why_error(trial: Trial) -> str:
    turn, passes = trial.turns + 1, [call.piece for call in trial.calls[:-1] if call.piece in ("forward", "backward")]
    if "forward" not in trial.order.split():
        return "Nothing computes a loss, so `backward()` has nothing to start from."
    if passes[-1:] == ["backward"]:
        cause = f"In turn {turn} `backward()` goes through the same loss a second time."
        return f"{cause} The first pass has freed the saved tensors."
    if passes:
        cause = f"In turn {turn} `step()` writes to the weights between the forward and its `backward()`."
        return f"{cause} `backward()` needs the weights of the forward, so PyTorch refuses."
    return f"In turn {turn} `backward()` comes before the first forward: there is no loss yet."


def _why_still(trial: Trial) -> str:
    steps, backwards = trial.ran("step"), trial.ran("backward")
    if not steps:
        return "No `step()` is called, so nothing moves the weights."
    if not backwards:
        return "No `backward()` is called: `.grad` stays None, and `step()` has nothing to apply."
    unused = sum(call.before.count(0) - call.before.count(1) for call in trial.ran("zero_grad"))
    cleared = f"{unused} of {len(backwards)} gradients were cleared before a step could apply them"
    return f"All {len(steps)} steps find None in `.grad`: {cleared}."


def _why_right(trial: Trial) -> str:
    steps = [step for step in trial.ran("step") if step.before.times]
    reasons = [f"{number_of(len(steps), 'step')}: each applies one new gradient, taken at the weights of that moment."]
    if any(step.turn == 1 and not step.before.times for step in trial.ran("step")):
        reasons.append("In turn 1 a `step()` finds None in `.grad` and does nothing.")
    if len(steps) > trial.turns:
        reasons.append(f"But {len(steps)} updates are made of {trial.turns} batches.")
    return " ".join(reasons)


def _troubles(trial: Trial) -> list[str]:
    """Return a text for each kind of fault in the trial's steps, the worst first."""
    steps, troubles = trial.ran("step"), []
    of = f"of {len(steps)} steps"
    again = [step.before for step in steps if step.before.count(1)]
    if again:
        last = f"{number_of(len(again[-1].times), 'gradient')} in `.grad`, {again[-1].count(1)} of them applied before"
        troubles.append(f"{len(again)} {of} apply a gradient that was applied before. The last of them finds {last}.")
    several = [new for step in steps if (new := step.before.count(0) - step.before.count(1)) > 1]
    if several:
        most = max(several)
        troubles.append(f"{len(several)} {of} apply {most} new gradients at once, so they move {most} times as far.")
    return troubles
