"""Passes that run too often for one update, and graphs that live too long."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from typing import Any

from ..events import Backward, Site
from ..finding import Cause, Code, Edit
from ..graphs.autograd_graph import LOOK_EVERY
from ..source.carried import without_graph
from ..source.grad_lines import reads_gradient_of_an_input, replaced
from ..source.syntax import function_around
from ..state.grad_state import StepFacts, unique_sorted
from .base import Rule, numbered
from .clearing import clear_above

_CALLERS = 3  # lines that are looked at: the pass, and those that have led to it


class SamGradientsKept(Rule):
    """Sharpness-aware minimisation whose second pass adds to the gradients of the first, or the first to older ones.

    How it is known: of the passes of an update, the first ran at the weights that the last step has left; then
    something other than a step moved nearly all of a sample of the weights; and nothing was cleared between two passes.

    How sure: proven. Sums that are meant look different, and are left alone: they move one layer only (FGM on
    embeddings), draw other weights for the first pass, too (noise on weights), write to `.grad`, or weigh the losses.
    """

    SAM_GRADIENTS_KEPT = Code(
        "sam-gradients-kept",
        "04_zero_grad",
        severity="warning",
        message="The step applies the gradients at the original weights and those at the moved weights together, "
        "because nothing clears `.grad` between the two passes of SAM.",
        fix="Clear the gradients after the weights are moved, before the second backward().",
    )

    def _begin(self) -> None:
        self._upon: dict[int, list[Any]] = {}  # pass -> what earlier steps had used, and that it was added to

    def accumulate(self, added: Any) -> None:
        """Note a pass that adds to what a step has used."""
        groups = [group for group in added.groups if not group.edited]
        if used := [held.backward for group in groups for held in group.held if held.used_by >= 0]:
            self._upon[added.backward.number] = unique_sorted(used)

    def step(self, facts: StepFacts) -> None:
        """Look for weights that were moved between the passes of this step, and for what was moved along."""
        upon, self._upon = self._upon, {}
        sampled = self.context.log.weight_marks.sampled & facts.step.present
        passes = self._passes(facts)
        lost = [one for cleared in facts.since.clearings for one in cleared.lost]
        climbs = [one for one in lost if one.number in upon] if len(passes) == 1 else []
        if facts.edited or not sampled or not passes:
            return
        first, *later = climbs[:1] + passes
        if first.moved & sampled or any(one.weighted for one in (first, *later)):
            return
        moved = [one for one in later if 2 * (one.moved & sampled).bit_count() > sampled.bit_count()]
        if not moved or any(one.moved & sampled for one in later if one not in moved):
            return
        optimizer, site, second = facts.step.optimizer, facts.step.site, moved[0]
        if (times := self.count(site)) < 2:
            return
        words = f"update {facts.number} of {self.context.name(optimizer)}"
        if climbs:
            words += f" moved the weights along {numbered(upon[first.number])} again, beside {numbered([first])}"
            path = self.context.log.path(site)
            self.report(_AFTER_STEP, site, f"{words}; {times} times", lambda: self._edit(optimizer, path, first))
            return
        before = [one for one in passes if one.number < second.number]
        after = numbered([one for one in passes if one.number >= second.number])
        words += f" applied {numbered(before)} and, after the weights had been moved, {after}; {times} times"
        lines = _between(before[-1].site, second.site)
        self.report(self.SAM_GRADIENTS_KEPT, site, words, lambda: self._edit(optimizer, lines, second))

    def _edit(self, optimizer: int, lines: Iterable[Site], later: Backward) -> Edit | Cause | None:
        """Return the call that is told not to clear, or else the place above the pass before which to clear."""
        told = (replaced(line, "zero_grad=False", "zero_grad=True") for line in lines)
        return next(filter(None, told), None) or clear_above(self.context, optimizer, later.site)

    def _passes(self, facts: StepFacts) -> list[Any]:
        """Return the passes that this step uses first; an optimizer that has called this one counts as the same."""
        optimizers, steps = self.context.state.optimizers, self.context.state.steps
        others = [held for held in facts.held if held.used_by not in (-1, facts.step.optimizer)]
        callers = [held for held in others if optimizers[held.used_by].is_custom_class]
        called = [held.backward for held in callers if held.backward.step_index == steps.get(held.used_by)]
        return unique_sorted(facts.fresh + called)


_AFTER_STEP = SamGradientsKept.SAM_GRADIENTS_KEPT.with_(
    message="SAM moves the weights along the gradients of the last update as well, because nothing clears `.grad` "
    "after the step.",
    fix="Clear the gradients after the second step of SAM, before the next backward().",
)


def _between(first: Site, second: Site) -> list[Site]:
    """Return the lines between two lines of the same function."""
    same = function_around(first) is function_around(second)
    return [(first[0], line) for line in range(first[1] + 1, second[1])] if same else []


class AttackGradients(Rule):
    """A step that applies the gradients of a pass which was made to attack the input.

    How it is known: one of its passes gave a gradient to a tensor that is no parameter, whose `.grad` the function
    around it reads; another one, for the training loss, did not; nothing cleared or edited `.grad` between them.

    How sure: proven. Where it is meant, every pass is an attack (free adversarial training, FreeLB), or the losses are
    weighted: these are left alone.
    """

    ATTACK_GRADIENTS_IN_STEP = Code(
        "attack-gradients-in-step",
        "04_zero_grad",
        severity="warning",
        message="The step also applies the gradients that the attack on the input has left in the weights' `.grad`.",
        fix="Call {optimizer}.zero_grad() after the attack, before the backward() of the training loss.",
    )

    def _begin(self) -> None:
        self._reads: dict[Any, bool] = {}

    def step(self, facts: StepFacts) -> None:
        """Look for passes of two kinds: for an input's gradient, and for the weights alone."""
        fresh, optimizer, site = facts.fresh, facts.step.optimizer, facts.step.site
        if facts.edited or len(fresh) < 2:
            return
        attacks = [one for one in fresh if one.inputs and not one.weighted and self._reads_gradient(one.site)]
        training = [one for one in fresh if not one.inputs]
        if len(attacks) + len(training) < len(fresh):
            return
        if any(one.added & two.added for one in attacks for two in training) and (times := self.count(site)) >= 2:
            seen = f"update {facts.number} of {self.context.name(optimizer)} applied {numbered(attacks)} of the attack "
            seen += f"in line {attacks[-1].site[1]} with {numbered(training)}; {times} times"
            last = fresh[-1] is training[0]
            edit = partial(clear_above, self.context, optimizer, training[0].site) if last else None
            self.report(self.ATTACK_GRADIENTS_IN_STEP, site, seen, edit, of=optimizer)

    def _reads_gradient(self, site: Any) -> bool:
        if site not in self._reads:
            callers = self.context.log.path(site)[:_CALLERS]
            self._reads[site] = any(reads_gradient_of_an_input(one) for one in callers)
        return self._reads[site]


_LOOKS = 5  # in a row, at each of which more graphs have to be alive: a cache of the last ones stops growing
_FEW_GRAPHS, _FEW_BATCHES = 6, 3


class CarriedGraph(Rule):
    """The graph grows from update to update, or the graphs of past updates stay alive in a variable."""

    RETAIN_GRAPH_GROWTH = Code(
        "retain-graph-growth",
        "01_autograd",
        "What is freed",
        message="Each backward() goes back through all earlier batches: retain_graph=True keeps their graphs, and what "
        "is carried from batch to batch is never detached.",
        fix="Detach what is carried from one batch to the next, and call backward() without retain_graph=True.",
    )
    GRAPH_RETAINED_MEMORY_LEAK = Code(
        "graph-retained-memory-leak",
        "10_loop_doctor",
        "Fine, until it is killed",
        message="`{name}` keeps the graphs of past batches alive: what is added to it still has its graph, so memory "
        "grows with every batch.",
        fix="Store what is added to `{name}` without its graph: detach() it, or take the number with item().",
    )
    STATE_WITH_GRAPH = GRAPH_RETAINED_MEMORY_LEAK.with_(
        severity="hint",
        message="`{name}` carries its graph from batch to batch: memory grows until it starts anew.",
        fix="Detach `{name}` between two batches if no gradient goes back through earlier ones.",
    )

    def _begin(self) -> None:
        self._nodes: defaultdict[Any, deque[tuple[int, int]]] = defaultdict(lambda: deque(maxlen=16))
        self._kept: deque[Any] = deque(maxlen=_LOOKS)

    def backward(self, backward: Any) -> None:
        """Look at the counts that the listener has taken now and then."""
        if backward.nodes:
            self._nodes[backward.site].append((backward.number, backward.nodes))
            self._growing(backward.site)
        if backward.number % LOOK_EVERY == 0:
            self._kept.append(backward)
            self._leaking(backward)

    def _growing(self, site: Any) -> None:
        counts = self._nodes[site]
        sizes = [size for _, size in counts]
        rising = all(later > earlier for earlier, later in pairwise(sizes[-5:]))
        if len(sizes) >= 5 and rising and sizes[-1] >= 2 * sizes[-5] - sizes[-5] // 2:
            (first, few), (last, many) = counts[0], counts[-1]
            seen = f"the graph had {few} nodes at batch {first} and {many} at batch {last}"
            self.report(self.RETAIN_GRAPH_GROWTH, site, seen, Cause(*site))

    def _leaking(self, newest: Any) -> None:
        holder, counts = newest.holder, [one.alive for one in self._kept]
        if holder is None or holder.batches < _FEW_BATCHES or self.context.has_finding(self.RETAIN_GRAPH_GROWTH):
            return
        if len(counts) < _LOOKS or counts[-1] < _FEW_GRAPHS or not all(few < many for few, many in pairwise(counts)):
            return  # as many as ever: what an update needs of the one before
        seen = f"at batch {newest.number} `{holder.name}` held graphs of at least {holder.batches} earlier batches"
        if holder.carried:
            self.report(self.STATE_WITH_GRAPH, holder.site, seen, name=holder.name)
        else:
            edit = partial(without_graph, holder)
            self.report(self.GRAPH_RETAINED_MEMORY_LEAK, holder.site, seen, edit, name=holder.name)
