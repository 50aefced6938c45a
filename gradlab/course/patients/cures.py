"""Whether a loop is cured, and that nothing healthy was cut off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from ..._process import preserving_modes
from ...formatting import number_of, short
from .case import CaseDefinition, PatientCase
from .run_loop import LoopOutcome

_CUT_OFF = {
    "clip": "The loop no longer clips its gradients",
    "GradScaler.step": "The loop no longer steps by way of the scaler",
    "autocast": "The forward pass no longer runs in autocast",
    "Dropout in training": "Dropout works in fewer forward passes than it should",
    "Dropout in evaluation": "Fewer forward passes run in evaluation mode than should",
    "forward without gradients": "The loop validates less than it did, or no longer without gradients",
}
_SHOWN = 4


@dataclass(frozen=True)
class CureVerdict:
    """The outcome of a check; it counts as true when the loop is cured."""

    reasons: tuple[str, ...]
    """Why it is not cured, a sentence or two each; empty when it is."""
    loss: float
    """The loss on held-out data, NaN where the loop came to no end."""
    words: str

    def __bool__(self) -> bool:
        return not self.reasons

    def __repr__(self) -> str:
        return self.words


def judge(case: PatientCase, outcome: LoopOutcome, cured: LoopOutcome) -> CureVerdict:
    """Compare a loop's run with the run of the cured one; what is not asked for may differ."""
    asked, loss = case.definition, math.nan
    reasons = [f"Line {one.line}: {one.message} Seen: {one.evidence}." for one in outcome.wrong[:2]]
    model = outcome.names.get("model")
    if outcome.trouble:
        reasons.insert(0, outcome.trouble)
    elif not isinstance(model, nn.Module):
        reasons.append("After the loop there is no model called `model`.")
    else:
        loss = _held_out(asked, outcome.names)
        if math.isnan(loss):
            reasons.append(
                f"The {asked.measure} cannot be computed, or is NaN; at most {short(asked.bound)} is asked for."
            )
        elif loss > asked.bound:
            reasons.append(f"The {asked.measure} is {short(loss)}; a cured loop reaches {short(asked.bound)} or less.")
        reasons += _cut_off(model, outcome, cured)
        reasons += filter(None, [asked.also(outcome, cured)])
    if reasons:
        return CureVerdict(tuple(reasons), loss, "Not cured yet. " + " ".join(reasons))
    said = f"Cured: the doctor finds nothing, the {asked.measure} is {short(loss)} (at most {short(asked.bound)}"
    kept = f"{outcome.history.updates:,} updates, as many as before"
    return CureVerdict((), loss, f"{said} was asked for), and nothing was cut off: {kept}.")


def _held_out(asked: CaseDefinition, names: Mapping[str, Any]) -> float:
    with preserving_modes(names["model"]):
        names["model"].eval()
        try:
            return float(asked.held_out(names))
        except Exception:  # a model of another shape than was asked for
            return math.nan


def _cut_off(model: nn.Module, outcome: LoopOutcome, cured: LoopOutcome) -> list[str]:
    mine, right = outcome.history, cured.history
    found = []
    if mine.updates != right.updates:
        found.append(f"It makes {mine.updates:,} updates; the loop is meant to make {right.updates:,}.")
    else:
        pairs = enumerate(zip(mine.rows, right.rows, strict=True), 1)
        other = [(at, one.fresh, meant.fresh) for at, (one, meant) in pairs if one.fresh != meant.fresh]
        for at, *counts in other[:1]:
            count, meant = (number_of(count, "batch", "es") for count in counts)
            found.append(f"Update {at} applies {count} where {meant} should be in it.")
    for name, words in _CUT_OFF.items():
        if mine.calls[name] < right.calls[name]:
            found.append(f"{words}: {mine.calls[name]:,} instead of {right.calls[name]:,} times.")
    still = [f"model.{name}" for name, param in model.named_parameters() if id(param) not in mine.moved]
    if still:
        names = ", ".join(still[:_SHOWN]) + (", ..." if len(still) > _SHOWN else "")
        found.append(f"No update has moved {names}.")
    return found
