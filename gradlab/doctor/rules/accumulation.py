"""Rules for gradient accumulation: gradients that are cleared too early, get no step, or are not averaged."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from itertools import pairwise
from typing import Any

from ...formatting import batches_text
from ..events import MANUAL_UPDATE, NO_SITE, Backward, Site
from ..finding import Cause, Code
from ..source.blocks import loops_around
from ..source.calls import clears_by_hand, condition_around, with_loss
from ..state.facts import StepFacts
from ..state.grad_state import MOST_SIZES
from .base import Rule, RuleContext, numbered
from .scaling import SkippedStep

_STEPS_PER_LONGER = 5  # minimum number of steps for each step that applies several batches
_MIN_PILED_UP = 8  # minimum number of batches without a step
_DIVISION_TOLERANCE = 0.01
_UNEQUAL_TARGETS_RATIO = 1.25  # minimum ratio of the largest to the smallest number of targets


def lost_in(facts: StepFacts) -> list[Any]:
    """Return the backward passes that were cleared unused before a step that applies other passes of their call path.

    A pass counts only if all nonzero gradients that it added to the parameters of the step were cleared.
    """
    routes = {backward.call_path for backward in facts.fresh}
    return [
        backward
        for cleared in facts.since.clearings
        for backward in cleared.lost
        if backward.call_path in routes
        and not (backward.stepped_params or backward.skipped_by_scaler or backward.retain)
        and not backward.added & facts.step.params & ~(backward.cleared_params | backward.zeros)
    ]


class ZeroGradInMicroBatch(Rule):
    """``zero_grad()`` runs between the micro-batches of an update, so the step applies only the last micro-batch."""

    ZERO_GRAD_IN_MICRO_BATCH = Code(
        "zero-grad-in-micro-batch",
        "07_gradient_accumulation",
        "The loop to keep",
        message="The gradients are cleared inside a window of micro-batches, so each update applies only the last.",
        fix="Clear the gradients once for each window instead: move this line to right after {optimizer}.step().",
    )

    def step(self, facts: StepFacts) -> None:
        optimizer, lost = facts.step.optimizer, lost_in(facts)
        sites = {clear.site for clear in facts.since.clearings if any(backward in lost for backward in clear.lost)}
        # The step() of a custom optimizer class may restore gradients that it has stored, as DP-SGD does.
        custom = optimizer != MANUAL_UPDATE and self.state.optimizers[optimizer].is_custom_class
        site = next(iter(sites), NO_SITE)
        if not lost or len(sites) != 1 or facts.edited or custom or not self._inside(site, facts.fresh):
            self.times[optimizer] = 0
        elif self.count(optimizer) >= 2:
            site = site if site != NO_SITE else clears_by_hand(facts.step.site)
            proof = f"update {facts.number} applied {numbered(facts.fresh)} alone; "
            proof += f"{numbered(lost)} had been cleared in line {site[1]}"
            edit = Cause(*site) if site != facts.step.site else None
            self.report(self.ZERO_GRAD_IN_MICRO_BATCH, site, proof, edit, of=optimizer)

    def _inside(self, clear: Site, fresh: list[Backward]) -> bool:
        """Return whether the line ``clear`` and the last of ``fresh`` are, or may be, directly inside the same loop."""
        if clear == NO_SITE:
            return len(fresh) == 1
        path = self.log.path
        here, there = loops_around(path(clear))[:1], loops_around(path(fresh[-1].site))[:1]
        return here == there or not (here and there)


class WindowDropped(Rule):
    """The last micro-batches of an epoch get no step of their own, or the first step applies too few micro-batches."""

    LAST_ACCUMULATION_WINDOW_DROPPED = Code(
        "last-accumulation-window-dropped",
        "07_gradient_accumulation",
        "The last window",
        "warning",
        message="The last window of an epoch has fewer micro-batches and gets no step of its own.",
        fix="Also call {optimizer}.step() and {optimizer}.zero_grad() after the last micro-batch of an epoch, even if "
        "its window is not full.",
    )
    FIRST_IS_SHORT = LAST_ACCUMULATION_WINDOW_DROPPED.with_(
        severity="hint",
        message="The first update applies {first}, and the others {window} each.",
        fix="Count micro-batches from 1: `if (i + 1) % {window} == 0` where i begins with 0.",
    )
    ENDED_INSIDE = LAST_ACCUMULATION_WINDOW_DROPPED.with_(severity="hint")

    def _begin(self) -> None:
        # By optimizer and numbers of (applied, lost) batches: the number of such updates, and the last lost batches.
        self._wiped: defaultdict[int, dict[tuple[int, int], tuple[int, list[Any]]]] = defaultdict(dict)
        self._odd: dict[int, str] = {}

    def step(self, facts: StepFacts) -> None:
        optimizer, fresh, sizes = facts.step.optimizer, facts.fresh, self.state.sizes[facts.step.optimizer]
        if lost := lost_in(facts):
            wiped, counts = self._wiped[optimizer], (len(fresh), len(lost))
            wiped[counts] = wiped.get(counts, (0, []))[0] + 1, lost
        if sizes and len(fresh) > sizes[0]:
            self._odd[optimizer] = f"update {facts.number} applied {len(fresh)} batches ({numbered(fresh)})"

    def end(self, *, normal: bool) -> None:
        code = self.LAST_ACCUMULATION_WINDOW_DROPPED
        for optimizer, sizes in self.state.sizes.items():
            if not sizes:
                continue
            window, often = Counter(sizes).most_common(1)[0]
            wiped = [case for (size, lost), case in self._wiped[optimizer].items() if size == window and lost < window]
            left = left_in(self.context, optimizer)
            alone = len(self.state.lines[optimizer]) == 1  # True if the optimizer's passes all come from one line
            if leaks(sizes):
                left_over = f"where a window has {sizes[0]}: some were left over from the epoch before"
                self._say(code, optimizer, f"{self._odd[optimizer]} {left_over}")
            elif window > 1 and len(sizes) > 3 and sizes[0] < window and {*sizes[1:-1]} == {window} and alone:
                first = batches_text([(1, sizes[0])])
                proof = f"update 1 applied {first}, update 2 applied {window}"
                self._say(self.FIRST_IS_SHORT, optimizer, proof, first=first, window=window)
            elif window < 2 or often < 2:
                continue
            elif len(wiped) == 1 and wiped[0][0] < often:
                proof = f"{numbered(wiped[0][1])} was cleared before any step; a window has {window}"
                self._say(code, optimizer, proof)
            elif normal and 0 < len(left) < window and often == len(sizes) < MOST_SIZES:
                fields = f"{numbered(left)} was never applied: training ended inside a window of {window}"
                self._say(self.ENDED_INSIDE, optimizer, fields)

    def _say(self, code: Code, optimizer: int, proof: str, **fields: Any) -> None:
        site = self.state.last[optimizer].step.site
        self.report(code, site, proof, partial(condition_around, self.log.path(site)), of=optimizer, **fields)


def leaks(sizes: list[int]) -> bool:
    """Return whether, from the second epoch on, exactly the first step of each epoch applies extra micro-batches.

    ``sizes`` has the number of micro-batches of each step. If the last ones of an epoch get no step, the first step of
    the next epoch applies them as well: with k steps per epoch, steps k + 1, 2 k + 1, ... apply more than the others.
    """
    window = sizes[0]
    longer = [index for index, size in enumerate(sizes) if size != window]
    if window < 2 or not longer or len({sizes[i] for i in longer}) > 1 or not window < sizes[longer[0]] < 2 * window:
        return False
    period = longer[0]
    return longer == list(range(period, len(sizes), period)) and (len(longer) > 1 or len(sizes) >= 2 * period)


class StepLeftOut(Rule):
    """A loop that steps after every batch sometimes omits the step, so that the next step applies this batch as well.

    The evidence is that nearly all steps apply one batch and a few in between apply several of the same call path, or
    that many batches pile up without a step. The finding is a hint: a guard against outliers probably skips
    ``zero_grad()`` together with the step, but the loop may also apply the batches later on purpose.
    """

    SKIPPED_STEP_KEEPS_GRADIENTS = SkippedStep.SKIPPED_STEP_KEEPS_GRADIENTS.with_(
        severity="hint",
        message="Where a step was left out, its batch stayed in `.grad`, and the next step applied it as well.",
        fix="Call {optimizer}.zero_grad() even if the step is left out.",
    )

    def _begin(self) -> None:
        self._others: set[int] = set()  # optimizers with edited gradients, or with passes of several call paths
        self._longer: defaultdict[int, list[StepFacts]] = defaultdict(list)
        self._pile: dict[int, list[Backward]] = {}  # each optimizer's longest list of passes that were cleared unused

    def step(self, facts: StepFacts) -> None:
        optimizer, fresh = facts.step.optimizer, facts.fresh
        special = any(backward.skipped_by_scaler or backward.retain for backward in fresh)
        alike = len({backward.call_path for backward in fresh}) == 1 and not special
        self._others |= set() if alike and not facts.edited else {optimizer}
        if len(fresh) > 1 and len(self._longer[optimizer]) < MOST_SIZES:
            self._longer[optimizer].append(facts)
        for cleared in facts.since.clearings if alike else ():
            lost = [backward for backward in cleared.lost if backward.call_path == fresh[0].call_path]
            self._pile[optimizer] = max(self._pile.get(optimizer, []), lost, key=len)

    def end(self, *, normal: bool) -> None:
        for optimizer, last in self.state.last.items():
            longer = self._longer[optimizer]
            apart = sum(b.number - a.number > 1 for a, b in pairwise(longer))  # adjacent updates mean a longer window
            if optimizer in self._others or not last.fresh or last.number < _STEPS_PER_LONGER * max(1, len(longer)):
                continue
            route = last.fresh[0].call_path
            left = [backward for backward in left_in(self.context, optimizer) if backward.call_path == route]
            pile = max(left, self._pile.get(optimizer, []), key=len)
            if len(pile) >= _MIN_PILED_UP:
                proof = f"{numbered(pile)} piled up without a step"
            elif apart >= 2:
                proof = f"update {longer[-1].number} applied {numbered(longer[-1].fresh)}; {len(longer)} updates did so"
            else:
                continue
            site = last.step.site
            edit = partial(condition_around, (site,))
            self.report(self.SKIPPED_STEP_KEEPS_GRADIENTS, site, proof, edit, of=optimizer)


def left_in(context: RuleContext, optimizer: int) -> list[Backward]:
    """Return the backward passes in an optimizer's unedited gradients that no step used and no scaler skipped."""
    groups = context.state.groups(context.state.params_of[optimizer])
    left = {entry.backward.number: entry.backward for group in groups for entry in group.fresh if not group.edited}
    return [backward for backward in left.values() if not backward.skipped_by_scaler]


class LossNotDivided(Rule):
    """The mean losses of n micro-batches are not divided by n, are divided twice, or average unequal target counts.

    The evidence is in the graph of each loss: either a factor of 1 / n occurs twice, or it does not occur at all and
    the total weight of the means is nearer to 1 than to 1 / n. The finding is only a hint, since a smaller learning
    rate compensates for a missing division, and a sum over tasks looks the same.
    """

    LOSS_NOT_DIVIDED = Code(
        "loss-not-divided",
        "07_gradient_accumulation",
        "Divide or not",
        "hint",
        message="The mean losses of {count} micro-batches are added up, so the step is {count} times as long as "
        "that of one large batch.",
        fix="Divide each loss by the number of micro-batches in its window.",
    )
    TWICE = LOSS_NOT_DIVIDED.with_(
        message="Each loss of a window is divided by {count} twice, so the step is {count} times shorter than that of "
        "one large batch.",
        fix="Divide each loss once: look for the second division in what calls backward().",
    )
    UNEQUAL = LOSS_NOT_DIVIDED.with_(
        message="Each micro-batch is a mean over its own number of targets, so targets in small micro-batches "
        "count more.",
        fix='Add up the losses (reduction="sum") and divide by the number of targets in the whole window.',
    )

    def _begin(self) -> None:
        self._windows: defaultdict[int, Counter[int]] = defaultdict(Counter)  # counts of window sizes, by optimizer

    def step(self, facts: StepFacts) -> None:
        optimizer, fresh, count = facts.step.optimizer, facts.fresh, len(facts.fresh)
        later = fresh[1:]  # the means in a loss are not recorded for the first pass after a step
        plain = all(b.mass and not b.has_grads and not b.retain and not b.create for b in later)
        alike = len({(backward.call_path, backward.added) for backward in fresh}) == 1
        if count < 2 or not plain or not alike or facts.edited or any(entry.used_by >= 0 for entry in facts.passes):
            return
        windows, site = self._windows[optimizer], fresh[-1].site
        windows[count] += 1
        divisions = [sum(abs(scale * count - 1) < _DIVISION_TOLERANCE for scale in b.scales) for b in later]
        tokens = [backward.tokens for backward in later if isinstance(backward.tokens, float)]
        if windows.total() < 2 or 2 * windows.total() <= facts.number:
            return
        proof = f"update {facts.number} applied {numbered(fresh)}, each a mean"
        if min(divisions) >= 2 and self._often((optimizer, "twice"), windows):
            self.report(self.TWICE, site, f"{proof}, divided by {count} twice", Cause(*site), count=count)
        elif self._undivided(later, divisions, count) and self._often(optimizer, windows):
            edit = partial(with_loss, site, f"{{}} / {count}") if len(windows) == 1 else Cause(*site)
            self.report(self.LOSS_NOT_DIVIDED, site, f"{proof}, without a division", edit, count=count)
        elif (
            len(tokens) == len(later)
            and len({round(backward.mass, 6) for backward in later}) == 1  # unequal if the loop weights its losses
            and max(tokens) > _UNEQUAL_TARGETS_RATIO * min(tokens)
            and self._often((optimizer, "sums"), windows)
        ):
            listed = ", ".join(f"{number:,.0f}" for number in tokens[:8])
            self.report(self.UNEQUAL, site, f"{proof}: over {listed} targets", Cause(*site), count=count)

    def _undivided(self, later: list[Backward], divisions: list[int], count: int) -> bool:
        """Return whether the mean losses were neither divided by about ``count`` nor multiplied by more than 1."""
        scales = [scale for backward in later for scale in backward.scales]
        light = min(backward.mass for backward in later) < count**-0.5
        return not any(divisions) and max(scales, default=1) <= 1 and not light

    def _often(self, what: Any, windows: Counter[int]) -> bool:
        times = self.count(what)
        return times >= 2 and 2 * times >= windows.total()
