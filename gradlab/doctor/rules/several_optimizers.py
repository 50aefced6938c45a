"""Several optimizers for the same weights: one after the other, or side by side."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from ..events import NO_SITE, union_bits
from ..finding import Code
from ..source.blocks import loops_around
from ..source.syntax import cause_at
from ..state.grad_state import StepFacts
from .base import Rule, how_many

_MOST = 512
_REMADE = 2  # optimizers before this one, to speak of a pattern
_STATELESS_BY_DESIGN = ("LBFGS",)  # a problem of its own for each batch, as in calibration
_MEANT = re.compile(
    r"\b(task|fold|client|phase|stage|round|trial|seed|run|restart|cycle|domain|level|generation|session|worker"
    r"|user|agent|subject|experiment|config|outer|meta|finetune|curriculum|growth)s?(?![a-z])"
)

_TRAINING = re.compile(r"epoch|batch|step|iter|loader")


class OptimizerRemade(Rule):
    """A line that makes a new optimizer over the same parameters again and again, in the loop that trains them.

    How it is known: the same line makes a third optimizer of one kind over the same tensors; each one before it kept
    momentum or averages; and the weights are at each first step what the one before has left: no other task or client.

    How sure: proven where each optimizer took a single step, and very likely in a loop over epochs or batches. Nothing
    is said where it looks meant: other settings each time, an `if` around it, a loop over tasks, folds or clients, or
    several epochs for each of them.
    """

    wakes_on = frozenset(("resumes",))
    OPTIMIZER_REMADE = Code(
        "optimizer-remade",
        "06_optimizer_step",
        "Who keeps what",
        "warning",
        message="This line makes a new optimizer for the same parameters again and again, so momentum and running "
        "averages are lost each time.",
        fix="Make the optimizer once, before the loop.",
    )

    def _begin(self) -> None:
        self._settings: dict[Any, set[str]] = {}

    def step(self, facts: StepFacts) -> None:
        """Judge the first step of an optimizer that goes on where another has stopped."""
        step, made = facts.step, self.context.state.optimizers[facts.step.optimizer]
        if not step.resumes:
            return
        settings = self._settings.setdefault(made.site, set())
        if len(settings) < _MOST:
            settings.add(made.settings)
        if step.resumes < _REMADE or made.site == NO_SITE or made.is_custom_class or made.kind in _STATELESS_BY_DESIGN:
            return
        others = len(settings) >= step.resumes  # other ones each time, as in phases of fine-tuning
        state = self.context.state
        several = any(
            state.steps.get(number, 0) > 1 for number, one in state.optimizers.items() if one.site == made.site
        )
        if several and _meant(made.lines, step.lines, others=others):
            return
        seen = f"{step.resumes + 1} {made.kind} optimizers ({made.settings.partition(', ')[0]}) over the same "
        seen += f"{how_many(step.params)}, the last before backward pass {self.context.state.newest}"
        self.report(self.OPTIMIZER_REMADE, made.site, seen, cause_at(made.site))


def _meant(made: tuple[Any, ...], stepped: tuple[Any, ...], *, others: bool) -> bool:
    """Return whether the source looks as if the new optimizer was meant."""
    loops = loops_around(made)
    if not loops or loops[0].conditional or (others and not _TRAINING.search(loops[0].words.lower())):
        return True
    if _MEANT.search(f"{loops[0].words} {loops[0].through}".lower().replace("_", " ")):
        return True
    return len([loop for loop in loops_around(stepped) if loop not in loops]) >= 2  # several epochs for each


class SharedParams(Rule):
    """Two optimizers that hold the same parameters and take turns in stepping them.

    How sure: where a net gets gradients and is in no optimizer, one of the two holds the wrong net: a warning. Where
    both hold exactly the same, it may be meant, as in an adversarial autoencoder: a hint. Nothing is said of others,
    nor of optimizers that hand their step on to another one, as SAM does.
    """

    wakes_on = frozenset(("shared",))
    PARAMS_IN_TWO_OPTIMIZERS = Code(
        "params-in-two-optimizers",
        "06_optimizer_step",
        severity="hint",
        message="{optimizer} and {other} hold the same parameters and take turns in stepping them.",
        fix="If it is not meant so, keep one of the two optimizers.",
    )
    WRONG_NET = PARAMS_IN_TWO_OPTIMIZERS.with_(
        severity="warning",
        message="{optimizer} and {other} hold the same parameters; {net}, which gets gradients from the losses of "
        "{optimizer}, is in no optimizer and never learns.",
        fix="Give {optimizer} the parameters of {net} instead.",
    )

    def _begin(self) -> None:
        self._at: dict[int, int] = {}  # optimizer -> how many steps of all there were when it has stepped last
        self._turns: Counter[tuple[int, int]] = Counter()  # two that share some: how often one was after the other
        self._reached: Counter[int] = Counter()  # optimizer -> parameters of the passes that it has used

    def step(self, facts: StepFacts) -> None:
        """Count how often this optimizer steps after another one, and note what its losses reach."""
        number, params_of = facts.step.optimizer, self.context.state.params_of
        before = self._at.get(number, 0)
        for other, at_step in self._at.items():
            if at_step > before and params_of[other] & facts.step.params:
                self._turns[other, number] += 1
        self._at[number] = max(self._at.values(), default=0) + 1
        self._reached[number] |= union_bits(backward.added for backward in facts.fresh)

    def end(self, *, normal: bool) -> None:
        """Tell of those that share parameters and took turns at least twice."""
        context, state = self.context, self.context.state
        alike = {number for number, made in state.optimizers.items() if not made.is_custom_class}
        for (first, second), turns in self._turns.items():
            if not {first, second} <= alike or min(turns, self._turns[second, first]) < 2:
                continue
            sites = {state.optimizers[one].site for one in (first, second)}
            remade = sites & {site for name, site in context.findings if name == OptimizerRemade.OPTIMIZER_REMADE.name}
            same = state.params_of[first] & state.params_of[second]
            left = context.never_moved(self._reached[second]) if same else 0
            net = context.part_name(left)
            if net and context.whole_models(left):
                self._say(self.WRONG_NET, second, first, net)
            elif first < second and state.params_of[first] == state.params_of[second] and not remade:
                self._say(self.PARAMS_IN_TWO_OPTIMIZERS, second, first, net)

    def _say(self, code: Code, optimizer: int, other: int, net: str) -> None:
        state, one, two = self.context.state, self.context.full_name(optimizer), self.context.full_name(other)
        own, edit = state.params_of[optimizer], cause_at(state.optimizers[optimizer].site)
        seen = f"{one} shares {(own & state.params_of[other]).bit_count()} of its {how_many(own)} with {two}; "
        seen += f"they took {state.steps.get(optimizer, 0)} and {state.steps.get(other, 0)} steps"
        site = self.context.made_at(optimizer, state.sites[optimizer])
        self.report(code, site, seen, edit, optimizer=one, other=two, net=net)
