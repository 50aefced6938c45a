"""Windows of micro-batches: wiped inside, dropped at the end, or summed instead of averaged."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import Any

from ..events import MANUAL_UPDATE, NO_SITE, Backward
from ..finding import Cause, Code
from ..source.calls import condition_around
from ..source.grad_lines import clears_by_hand, with_loss
from ..state.grad_state import StepFacts
from .base import Rule, RuleContext, numbered

_MOST_WINDOWS = 256


def lost_in(facts: StepFacts) -> list[Any]:
    """Return the passes of this window's own line that were cleared before any step could use them.

    Cleared everywhere: wherever they had added anything but zeros to this optimizer's parameters.
    """
    routes = {one.call_path for one in facts.fresh}
    return [
        one
        for cleared in facts.since.clearings
        for one in cleared.lost
        if one.call_path in routes
        and not (one.stepped_params or one.skipped_by_scaler or one.retain)
        and not one.added & facts.step.params & ~(one.cleared_params | one.zeros)
    ]


class ZeroGradInMicroBatch(Rule):
    """``zero_grad()`` runs for every micro-batch, so a step applies only the last one of its window."""

    ZERO_GRAD_IN_MICRO_BATCH = Code(
        "zero-grad-in-micro-batch",
        "07_gradient_accumulation",
        "The loop to keep",
        message="The gradients are cleared for every micro-batch, so each update applies only the last of its window.",
        fix="Clear the gradients once for each window instead: move this line to right after {optimizer}.step().",
    )

    def step(self, facts: StepFacts) -> None:
        """Look whether all but the last pass of this window was cleared."""
        optimizer, lost = facts.step.optimizer, lost_in(facts)
        cleared = [one for one in facts.since.clearings if any(backward in lost for backward in one.lost)]
        sites = {one.site for one in cleared}
        # The step() of an optimizer of the learner's own may bring back what it has kept, as DP-SGD does.
        own = optimizer != MANUAL_UPDATE and self.context.state.optimizers[optimizer].is_custom_class
        if len(cleared) < len(lost) or len(facts.fresh) != 1 or len(sites) != 1 or facts.edited or own:
            self.times[optimizer] = 0
        elif self.count(optimizer) >= 2:
            (site,) = sites
            site = site if site != NO_SITE else clears_by_hand(facts.step.site)
            seen = f"update {facts.number} applied {numbered(facts.fresh)} alone; {numbered(lost)} had been cleared"
            edit = Cause(*site) if site != facts.step.site else None
            self.report(self.ZERO_GRAD_IN_MICRO_BATCH, site, seen, edit, of=optimizer)


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
    ENDED_INSIDE = LAST_ACCUMULATION_WINDOW_DROPPED.with_(severity="hint")

    def _begin(self) -> None:
        self._sizes: defaultdict[int, list[int]] = defaultdict(list)
        self._wiped: defaultdict[int, list[Any]] = defaultdict(list)
        self._site: dict[int, Any] = {}
        self._odd: dict[int, str] = {}

    def step(self, facts: StepFacts) -> None:
        """Note how many passes of one line this step applies, and how many of them were lost before."""
        optimizer, fresh = facts.step.optimizer, facts.fresh
        if len({one.call_path for one in fresh}) != 1 or facts.step.backward or facts.edited:
            return
        sizes = self._sizes[optimizer]
        if len(sizes) >= _MOST_WINDOWS:
            return
        sizes.append(len(fresh))
        self._site[optimizer] = facts.step.site
        if lost := lost_in(facts):
            self._wiped[optimizer].append((len(fresh), lost))
        if len(fresh) > sizes[0]:
            self._odd[optimizer] = f"update {facts.number} applied {len(fresh)} batches ({numbered(fresh)})"

    def end(self, *, normal: bool) -> None:
        """Judge each optimizer's windows as a whole."""
        code = self.LAST_ACCUMULATION_WINDOW_DROPPED
        for optimizer, sizes in self._sizes.items():
            window, often = Counter(sizes).most_common(1)[0]
            wiped = [lost for size, lost in self._wiped[optimizer] if size == window and len(lost) < window]
            left = left_in(self.context, optimizer)
            if leaks(sizes):
                left_over = f"where a window has {sizes[0]}: some were left over from the epoch before"
                self._say(code, optimizer, f"{self._odd[optimizer]} {left_over}")
            elif window < 2 or often < 2:
                continue
            elif wiped and len(wiped) < often and all(len(lost) == len(wiped[0]) for lost in wiped):
                self._say(code, optimizer, f"{numbered(wiped[-1])} was cleared before any step; a window has {window}")
            elif normal and 0 < len(left) < window and often == len(sizes) < _MOST_WINDOWS:
                words = f"{numbered(left)} was never applied: training ended inside a window of {window}"
                self._say(self.ENDED_INSIDE, optimizer, words)

    def _say(self, code: Code, optimizer: int, seen: str) -> None:
        site = self._site[optimizer]
        self.report(code, site, seen, partial(condition_around, self.context.log.path(site)), of=optimizer)


def leaks(sizes: list[int]) -> bool:
    """Return whether longer windows come once an epoch, from the second epoch on.

    An epoch that leaves some micro-batches over has always the same number of steps, k, and the first step of the next
    one finds them: steps k + 1, 2 k + 1, ... are the longer ones. A short window with a step of its own comes last.
    """
    window = sizes[0]
    longer = [at for at, size in enumerate(sizes) if size != window]
    if window < 2 or not longer or len({sizes[at] for at in longer}) > 1 or not window < sizes[longer[0]] < 2 * window:
        return False
    period = longer[0]
    return longer == list(range(period, len(sizes), period)) and (len(longer) > 1 or len(sizes) >= 2 * period)


def left_in(context: RuleContext, optimizer: int) -> list[Backward]:
    """Return the passes that no step of an optimizer has used when the watch is over, nor a scaler was offered."""
    groups = context.state.groups(context.state.params_of[optimizer])
    left = {held.backward.number: held.backward for group in groups for held in group.fresh if not group.edited}
    return [one for one in left.values() if not one.skipped_by_scaler]


class LossNotDivided(Rule):
    """Several mean losses are added up for one step, and nothing divides them by their number."""

    LOSS_NOT_DIVIDED = Code(  # no more than a hint: a smaller lr makes up for it, and a sum over tasks looks the same
        "loss-not-divided",
        "07_gradient_accumulation",
        "Divide or not",
        "hint",
        message="The mean losses of {count} micro-batches are added up, so the step is {count} times as long as "
        "that of one large batch.",
        fix="Divide each loss by the number of micro-batches in its window.",
    )

    def _begin(self) -> None:
        self._windows: defaultdict[int, Counter[int]] = defaultdict(Counter)  # optimizer -> size -> how often
        self._others: Counter[int] = Counter()

    def step(self, facts: StepFacts) -> None:
        """Look for a window of undivided means, all of one line and over the same parameters."""
        optimizer, fresh, count = facts.step.optimizer, facts.fresh, len(facts.fresh)
        plain = all(one.mean and not one.given and not one.retain and not one.create for one in fresh)
        alike = len({(one.call_path, one.added) for one in fresh}) == 1
        if count < 2 or not plain or not alike or facts.edited or any(held.used_by >= 0 for held in facts.held):
            self._others[optimizer] += min(2, count)
            return
        windows = self._windows[optimizer]
        windows[count] += 1
        if windows.total() >= 2 and windows.total() > self._others[optimizer]:
            site = fresh[-1].site
            seen = f"update {facts.number} applied {numbered(fresh)}, each a mean, without a division"
            edit = partial(with_loss, site, f"{{}} / {count}") if len(windows) == 1 else Cause(*site)
            self.report(self.LOSS_NOT_DIVIDED, site, seen, edit, count=count)
