"""Whether a loop is cured, and that nothing healthy was cut off."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import nn

from ...formatting import number_of, short
from .case import PatientCase
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
    reasons, loss = [], math.nan
    if outcome.trouble:
        reasons.append(outcome.trouble)
    for finding in outcome.wrong[:2]:
        reasons.append(f"Line {finding.line}: {finding.message} Seen: {finding.evidence}.")
    if not outcome.trouble:
        missing = [name for name in case.definition.models if not isinstance(outcome.names.get(name), nn.Module)]
        if missing:
            reasons.append(f"After the loop there is no model called `{missing[0]}`.")
        else:
            loss = _held_out(case, outcome)
            reasons += _too_high(case, loss) + _cut_off(case, outcome, cured)
            lacking = case.definition.also(outcome, cured)
            reasons += [lacking] if lacking else []
    if reasons:
        return CureVerdict(tuple(reasons), loss, "Not cured yet. " + " ".join(reasons))
    kept = f"{outcome.history.updates:,} updates, as many as before"
    said = f"Cured: the doctor finds nothing, the {case.definition.measure} is {short(loss)} (at most "
    return CureVerdict(
        (), loss, f"{said}{short(case.definition.bound)} was asked for), and nothing was cut off: {kept}."
    )


def _held_out(case: PatientCase, outcome: LoopOutcome) -> float:
    models = [outcome.names[name] for name in case.definition.models]
    modes = [(part, part.training) for model in models for part in model.modules()]
    try:
        for model in models:
            model.eval()
        return float(case.definition.held_out(outcome.names))
    except Exception:  # a model of another shape than was asked for
        return math.nan
    finally:
        for part, training in modes:
            part.training = training


def _too_high(case: PatientCase, loss: float) -> list[str]:
    bound, measure = case.definition.bound, case.definition.measure
    if loss <= bound:
        return []
    if math.isnan(loss):
        return [f"The {measure} cannot be computed, or is NaN; at most {short(bound)} is asked for."]
    return [f"The {measure} is {short(loss)}; a cured loop reaches {short(bound)} or less."]


def _cut_off(case: PatientCase, outcome: LoopOutcome, cured: LoopOutcome) -> list[str]:
    mine, right = outcome.history, cured.history
    found = []
    if mine.updates != right.updates:
        found.append(f"It makes {mine.updates:,} updates; the loop is meant to make {right.updates:,}.")
    else:
        windows = [row.fresh for row in mine.rows], [row.fresh for row in right.rows]
        if windows[0] != windows[1]:
            at = next(n for n, (one, other) in enumerate(zip(*windows, strict=True), 1) if one != other)
            count, meant = (number_of(fresh[at - 1], "batch", "es") for fresh in windows)
            found.append(f"Update {at} applies {count} where {meant} should be in it.")
    for name, words in _CUT_OFF.items():
        if mine.calls[name] < right.calls[name]:
            found.append(f"{words}: {mine.calls[name]:,} instead of {right.calls[name]:,} times.")
    still = [
        f"{model}.{name}"
        for model in case.definition.models
        for name, param in outcome.names[model].named_parameters()
        if id(param) not in mine.moved
    ]
    if still:
        names = ", ".join(still[:_SHOWN]) + (", ..." if len(still) > _SHOWN else "")
        found.append(f"No update has moved {names}.")
    return found
