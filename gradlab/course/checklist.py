"""Checklists: signs in a run's numbers that tell what is wrong with a training loop, each a rule that can be tried.

The rules of notebooks 03 and 10 are read off a LoopHistory. A sign is a question, not a proof: a batch norm that is
frozen on purpose shows "evaluation-mode". A test tries each rule on ordinary healthy runs of all tasks and optimizers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from ..formatting import html_box, number_of
from .patients.loop_history import LoopHistory, UpdateRow

_SPREAD = 10  # updates over which a loss is averaged: batches differ
_ROUNDING = 1.05
_FEWEST = 8  # updates from which growth is judged


@dataclass(frozen=True)
class ChecklistRule:
    """One sign: where it is told, what to look at, what it means, and a function that finds it."""

    name: str
    notebook: str
    look: str
    """What to look at, as an instruction."""
    means: str
    """What it means when the rule fires."""
    find: Callable[[LoopHistory], str]
    """Return what was seen, "" where the sign is not there."""


@dataclass(frozen=True)
class ChecklistResult:
    """A rule on one run."""

    rule: ChecklistRule
    seen: str

    def __bool__(self) -> bool:
        return bool(self.seen)


@dataclass(frozen=True)
class Checklist:
    """All rules of a notebook on one run, as a notebook shows them."""

    results: tuple[ChecklistResult, ...]

    @property
    def fired(self) -> list[str]:
        """The names of the rules whose sign was seen."""
        return [result.rule.name for result in self.results if result]

    def __iter__(self) -> Iterator[ChecklistResult]:
        return iter(self.results)

    def __repr__(self) -> str:
        return "\n".join(f"{'! ' if result else '- '}{result.rule.look} {_answer(result)}" for result in self.results)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        lines = "<br>".join(
            f"&#9888; <b>{result.rule.look}</b> {_answer(result)}"
            if result
            else f"{result.rule.look} {_answer(result)}"
            for result in self.results
        )
        return {"text/plain": repr(self), "text/html": html_box(lines, "#882255" if self.fired else "#009E73")}


def _answer(result: ChecklistResult) -> str:
    return f"Yes: {result.seen}. {result.rule.means}." if result else "No."


def check_symptoms(history: LoopHistory, notebook: str = "") -> Checklist:
    """Try the rules of a notebook, "03" or "10", or all of them, on a run."""
    numbers = sorted({rule.notebook for rule in CHECKLIST_RULES})
    if notebook not in ("", *numbers):
        raise ValueError(f"check_symptoms: notebook must be one of {', '.join(numbers)}, got {notebook!r}")
    rules = [rule for rule in CHECKLIST_RULES if notebook in ("", rule.notebook)]
    return Checklist(tuple(ChecklistResult(rule, rule.find(history)) for rule in rules))


def _first(history: LoopHistory, sign: Callable[[UpdateRow], bool], words: Callable[[UpdateRow], str]) -> str:
    """Return words for the first update with a sign; "" where there is none."""
    for number, row in enumerate(history.rows, 1):
        if sign(row):
            return f"update {number:,}, {words(row)}"
    return ""


def _full(history: LoopHistory) -> str:
    return _first(
        history,
        lambda row: row.full_before and row.stale > 0,
        lambda row: f"{number_of(row.stale, 'batch', 'es')} that a step had applied",
    )


def _long(history: LoopHistory) -> str:
    return _first(
        history,
        lambda row: math.isfinite(row.alone) and row.stale > 0 and row.norm > _ROUNDING * row.alone,
        lambda row: f"{row.norm:.3g} against {row.alone:.3g}",
    )


def _fast_then_worse(history: LoopHistory) -> str:
    losses = history.losses
    means = [fmean(losses[at : at + _SPREAD]) for at in range(0, len(losses) - _SPREAD + 1, _SPREAD)]
    if len(means) < 3 or not all(map(math.isfinite, means)):
        return ""
    low = min(range(len(means)), key=lambda at: means[at])
    later = max(means[low:])
    if means[low] < 0.7 * losses[0] and later > losses[0]:
        return f"from {losses[0]:.3g} down to {means[low]:.3g} and up to {later:.3g}"
    return ""


def _no_gradient(history: LoopHistory) -> str:
    return _first(
        history,
        lambda row: row.with_grad < row.tensors,
        lambda row: f"{row.with_grad} of {row.tensors} tensors have a gradient",
    )


def _not_moved(history: LoopHistory) -> str:
    return _first(
        history,
        lambda row: row.moved < row.with_grad,
        lambda row: f"{row.moved} of {row.tensors} tensors move, {row.with_grad} have a gradient",
    )


def _graph_kept(history: LoopHistory) -> str:
    nodes = [row.nodes for row in history.rows]
    grows = len(nodes) >= _FEWEST and all(one < other for one, other in pairwise(nodes[1:]))
    return f"from {nodes[0]:,} to {nodes[-1]:,} nodes" if grows else ""


def _evaluation(history: LoopHistory) -> str:
    return _first(history, lambda row: not row.training, lambda row: "dropout or batch norm is in evaluation mode")


def _loss_broken(history: LoopHistory) -> str:
    for number, row in enumerate(history.rows, 1):
        if not math.isfinite(row.loss):
            return f"update {number:,}, the loss is {row.loss:g}"
        if not math.isfinite(row.norm):
            return ""
    return ""


def _gradient_broken(history: LoopHistory) -> str:
    for number, row in enumerate(history.rows, 1):
        if not math.isfinite(row.loss):
            return ""
        if not math.isfinite(row.norm):
            return f"update {number:,}, the norm of .grad is {row.norm:g} while the loss is {row.loss:.3g}"
    return ""


CHECKLIST_RULES: tuple[ChecklistRule, ...] = (
    ChecklistRule(
        "full-before-backward",
        "03",
        "Is .grad full just before the first backward() of an update, and is that still in it at the step?",
        "It was not cleared: the step applies old batches again",
        _full,
    ),
    ChecklistRule(
        "longer-than-its-batches",
        "03",
        "Is the norm of .grad at the step larger than the norms of this update's own gradients together?",
        "Something else is in it: a pile of old gradients",
        _long,
    ),
    ChecklistRule(
        "fast-then-worse",
        "03",
        "Did the loss fall fast and then rise above where it began?",
        "Suspect a forgotten zero_grad(), and look into .grad; too large an lr can do the same",
        _fast_then_worse,
    ),
    ChecklistRule(
        "no-gradient",
        "10",
        "Do fewer tensors have a gradient at the step than the optimizer holds?",
        "They were cleared too early, the graph is cut before them, or the optimizer holds others than the model has",
        _no_gradient,
    ),
    ChecklistRule(
        "not-moved",
        "10",
        "Do fewer tensors move than have a gradient?",
        "The step has next to no size: look at lr, at clipping, at the scaler",
        _not_moved,
    ),
    ChecklistRule(
        "graph-kept",
        "10",
        "Does what the loop keeps hang on to more graph nodes after each update?",
        "A loss or a state is kept with its graph: a leak",
        _graph_kept,
    ),
    ChecklistRule(
        "evaluation-mode",
        "10",
        "Is a model in evaluation mode at a step?",
        "model.train() may be missing after a validation, or a batch norm is frozen on purpose",
        _evaluation,
    ),
    ChecklistRule(
        "loss-first",
        "10",
        "Was the loss the first that was inf or NaN?",
        "The forward pass broke: look at lr and at the loss function's arguments",
        _loss_broken,
    ),
    ChecklistRule(
        "gradient-first",
        "10",
        "Was a gradient the first that was inf or NaN?",
        "An operation has an infinite slope there: torch.autograd.set_detect_anomaly(True) names it",
        _gradient_broken,
    ),
)
"""All rules, in the order of the notebooks."""
