"""Several optimizers for the same weights, side by side."""

from __future__ import annotations

from collections import Counter

from ..events import union_bits
from ..finding import Code
from ..source.syntax import cause_at
from ..state.grad_state import StepFacts
from .base import Rule, how_many


class SharedParams(Rule):
    """Two optimizers that hold the same parameters and take turns in stepping them.

    How sure: where a net gets gradients and is in no optimizer, one of the two holds the wrong net: a warning. Where
    both hold exactly the same, it may be meant, as in an adversarial autoencoder: a hint. Nothing is said of others,
    nor of optimizers that hand their step on to another one, as SAM does.
    """

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
            same = state.params_of[first] & state.params_of[second]
            left = context.never_moved(self._reached[second]) if same else 0
            net = context.part_name(left)
            if net and context.whole_models(left):
                self._say(self.WRONG_NET, second, first, net)
            elif first < second and state.params_of[first] == state.params_of[second]:
                self._say(self.PARAMS_IN_TWO_OPTIMIZERS, second, first, net)

    def _say(self, code: Code, optimizer: int, other: int, net: str) -> None:
        state, one, two = self.context.state, self.context.full_name(optimizer), self.context.full_name(other)
        own, edit = state.params_of[optimizer], cause_at(state.optimizers[optimizer].site)
        seen = f"{one} shares {(own & state.params_of[other]).bit_count()} of its {how_many(own)} with {two}; "
        seen += f"they took {state.steps.get(optimizer, 0)} and {state.steps.get(other, 0)} steps"
        site = self.context.made_at(optimizer, state.sites[optimizer])
        self.report(code, site, seen, edit, optimizer=one, other=two, net=net)
