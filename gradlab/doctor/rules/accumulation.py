"""Windows of micro-batches: wiped inside, dropped at the end, or summed instead of averaged."""

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

_SINGLES_PER_LONGER = 4  # times as many steps with one batch
_MIN_PILED_UP = 8  # batches
_DIVISION_TOLERANCE = 0.01
_UNEQUAL_TARGETS_RATIO = 1.25  # times as many targets


def lost_in(facts: StepFacts) -> list[Any]:
    """Return the passes of this window's own line that were cleared before any step could use them.

    Cleared everywhere: wherever they had added anything but zeros to this optimizer's parameters.
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
    """``zero_grad()`` runs inside a window of micro-batches, so a step applies only the last of them."""

    ZERO_GRAD_IN_MICRO_BATCH = Code(
        "zero-grad-in-micro-batch",
        "07_gradient_accumulation",
        "The loop to keep",
        message="The gradients are cleared inside a window of micro-batches, so each update applies only the last.",
        fix="Clear the gradients once for each window instead: move this line to right after {optimizer}.step().",
    )

    def step(self, facts: StepFacts) -> None:
        """Look whether passes of this window were cleared, in the same loop as they run in."""
        optimizer, lost = facts.step.optimizer, lost_in(facts)
        cleared = [
            clearing for clearing in facts.since.clearings if any(backward in lost for backward in clearing.lost)
        ]
        sites = {clearing.site for clearing in cleared}
        # The step() of an optimizer of the learner's own may bring back what it has kept, as DP-SGD does.
        custom = optimizer != MANUAL_UPDATE and self.context.state.optimizers[optimizer].is_custom_class
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
        """Return whether a clearing is in the innermost loop around the passes; at the top of an epoch it is not."""
        if clear == NO_SITE:
            return len(fresh) == 1
        path = self.context.log.path
        here, there = loops_around(path(clear))[:1], loops_around(path(fresh[-1].site))[:1]
        return here == there or not (here and there)


class WindowDropped(Rule):
    """The last, shorter window of an epoch gets no step: it is wiped, or it leaks into the next epoch's first one."""

    LAST_ACCUMULATION_WINDOW_DROPPED = Code(
        "last-accumulation-window-dropped",
        "07_gradient_accumulation",
        "The last window",
        "warning",
        message="The last window of an epoch has fewer micro-batches and gets no step of its own.",
        fix="Call {optimizer}.step() and {optimizer}.zero_grad() after the last micro-batch of an epoch, too, even if "
        "its window is not full.",
    )
    FIRST_IS_SHORT = LAST_ACCUMULATION_WINDOW_DROPPED.with_(
        severity="hint",
        message="The first update applies {first}, and the others {window} each.",
        fix="Count micro-batches from 1: `if (i + 1) % {window} == 0` where i begins with 0.",
    )
    ENDED_INSIDE = LAST_ACCUMULATION_WINDOW_DROPPED.with_(severity="hint")

    def _begin(self) -> None:
        self._wiped: defaultdict[int, list[Any]] = defaultdict(list)
        self._odd: dict[int, str] = {}

    def step(self, facts: StepFacts) -> None:
        optimizer, fresh, sizes = facts.step.optimizer, facts.fresh, self.context.state.sizes[facts.step.optimizer]
        if lost := lost_in(facts):
            self._wiped[optimizer].append((len(fresh), lost))
        if sizes and len(fresh) > sizes[0]:
            self._odd[optimizer] = f"update {facts.number} applied {len(fresh)} batches ({numbered(fresh)})"

    def end(self, *, normal: bool) -> None:
        code = self.LAST_ACCUMULATION_WINDOW_DROPPED
        for optimizer, sizes in self.context.state.sizes.items():
            if not sizes:
                continue
            window, often = Counter(sizes).most_common(1)[0]
            wiped = [lost for size, lost in self._wiped[optimizer] if size == window and len(lost) < window]
            left = left_in(self.context, optimizer)
            alone = len(self.context.state.lines[optimizer]) == 1  # all its passes are of one line
            if leaks(sizes):
                left_over = f"where a window has {sizes[0]}: some were left over from the epoch before"
                self._say(code, optimizer, f"{self._odd[optimizer]} {left_over}")
            elif window > 1 and len(sizes) > 3 and sizes[0] < window and {*sizes[1:-1]} == {window} and alone:
                first = batches_text([(1, sizes[0])])
                proof = f"update 1 applied {first}, update 2 applied {window}"
                self._say(self.FIRST_IS_SHORT, optimizer, proof, first=first, window=window)
            elif window < 2 or often < 2:
                continue
            elif wiped and len(wiped) < often and all(len(lost) == len(wiped[0]) for lost in wiped):
                self._say(code, optimizer, f"{numbered(wiped[-1])} was cleared before any step; a window has {window}")
            elif normal and 0 < len(left) < window and often == len(sizes) < MOST_SIZES:
                fields = f"{numbered(left)} was never applied: training ended inside a window of {window}"
                self._say(self.ENDED_INSIDE, optimizer, fields)

    def _say(self, code: Code, optimizer: int, proof: str, **fields: Any) -> None:
        site = self.context.state.last[optimizer].step.site
        self.report(code, site, proof, partial(condition_around, self.context.log.path(site)), of=optimizer, **fields)


def leaks(sizes: list[int]) -> bool:
    """Return whether longer windows come once an epoch, from the second epoch on.

    An epoch that leaves some micro-batches over has always the same number of steps, k, and the first step of the next
    one finds them: steps k + 1, 2 k + 1, ... are the longer ones. A short window with a step of its own comes last.
    """
    window = sizes[0]
    longer = [index for index, size in enumerate(sizes) if size != window]
    if window < 2 or not longer or len({sizes[i] for i in longer}) > 1 or not window < sizes[longer[0]] < 2 * window:
        return False
    period = longer[0]
    return longer == list(range(period, len(sizes), period)) and (len(longer) > 1 or len(sizes) >= 2 * period)


class StepLeftOut(Rule):
    """A loop that steps for every batch leaves a step out now and then, and the next one applies that batch, too.

    How it is known: nearly all steps apply one batch, a few in between two or more, of the same line; or after such
    steps there are no more, while batches pile up. How sure: it looks like a guard against outliers that skips the
    clearing, too, but what is left may be meant: a hint.
    """

    SKIPPED_STEP_KEEPS_GRADIENTS = SkippedStep.SKIPPED_STEP_KEEPS_GRADIENTS.with_(
        severity="hint",
        message="Where a step was left out, its batch stayed in `.grad`, and the next step applied it as well.",
        fix="Call {optimizer}.zero_grad() also where the step is left out.",
    )

    def _begin(self) -> None:
        self._others: set[int] = set()  # optimizers with steps of another kind
        self._longer: defaultdict[int, list[StepFacts]] = defaultdict(list)
        self._pile: dict[int, list[Backward]] = {}  # the most that came without a step and were cleared at once

    def step(self, facts: StepFacts) -> None:
        """Count the batches of a step."""
        optimizer, fresh = facts.step.optimizer, facts.fresh
        alike = len({backward.call_path for backward in fresh}) == 1 and not any(
            backward.skipped_by_scaler or backward.retain for backward in fresh
        )
        self._others |= set() if alike and not facts.edited else {optimizer}
        if len(fresh) > 1 and len(self._longer[optimizer]) < MOST_SIZES:
            self._longer[optimizer].append(facts)
        for cleared in facts.since.clearings if alike else ():
            lost = [backward for backward in cleared.lost if backward.call_path == fresh[0].call_path]
            self._pile[optimizer] = max(self._pile.get(optimizer, []), lost, key=len)

    def end(self, *, normal: bool) -> None:
        """Look for a few longer ones among many of one batch, or many batches in the end."""
        for optimizer, last in self.context.state.last.items():
            longer = self._longer[optimizer]
            apart = sum(b.number - a.number > 1 for a, b in pairwise(longer))  # else windows have grown
            if optimizer in self._others or not last.fresh or last.number < (1 + _SINGLES_PER_LONGER) * max(1, len(longer)):
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
    """Return the passes that no step of an optimizer has used when the watch is over, nor a scaler was offered."""
    groups = context.state.groups(context.state.params_of[optimizer])
    left = {entry.backward.number: entry.backward for group in groups for entry in group.fresh if not group.edited}
    return [backward for backward in left.values() if not backward.skipped_by_scaler]


class LossNotDivided(Rule):
    """The losses of a window are means, and nothing divides them by their number, or two lines do, or each is a mean
    over another number of targets.

    Known from the numbers in the graph: what the means are multiplied with, all together, is nearer to 1 than to one
    part of the window. A division by 1 is none. No more than a hint: a smaller lr makes up for it, and a sum over tasks
    looks the same.
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
        message="Each micro-batch is a mean over its own number of targets, so a target counts more where there are "
        "few.",
        fix='Add up the losses (reduction="sum") and divide by the number of targets in the whole window.',
    )

    def _begin(self) -> None:
        self._windows: defaultdict[int, Counter[int]] = defaultdict(Counter)  # optimizer -> size -> how often

    def step(self, facts: StepFacts) -> None:
        """Look for a window of means, all of one line and over the same parameters."""
        optimizer, fresh, count = facts.step.optimizer, facts.fresh, len(facts.fresh)
        later = fresh[1:]  # how a loss is made is not looked at where a step came right before
        plain = all(b.mass and not b.has_grads and not b.retain and not b.create for b in later)
        alike = len({(backward.call_path, backward.added) for backward in fresh}) == 1
        if count < 2 or not plain or not alike or facts.edited or any(entry.used_by >= 0 for entry in facts.passes):
            return
        windows, site = self._windows[optimizer], fresh[-1].site
        windows[count] += 1
        divisions = [sum(abs(scale * count - 1) < _DIVISION_TOLERANCE for scale in backward.scales) for backward in later]
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
            and len({round(backward.mass, 6) for backward in later}) == 1  # else they are weighed by their numbers
            and max(tokens) > _UNEQUAL_TARGETS_RATIO * min(tokens)
            and self._often((optimizer, "sums"), windows)
        ):
            listed = ", ".join(f"{number:,.0f}" for number in tokens[:8])
            self.report(self.UNEQUAL, site, f"{proof}: over {listed} targets", Cause(*site), count=count)

    def _undivided(self, later: list[Backward], divisions: list[int], count: int) -> bool:
        """Return whether nothing divides the means; what is multiplied, as by the batch size, is a sum on purpose."""
        scales = [scale for backward in later for scale in backward.scales]
        light = min(backward.mass for backward in later) < count**-0.5
        return not any(divisions) and max(scales, default=1) <= 1 and not light

    def _often(self, what: Any, windows: Counter[int]) -> bool:
        times = self.count(what)
        return times >= 2 and 2 * times >= windows.total()
