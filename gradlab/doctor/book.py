"""The book: which backward passes are in which ``.grad``, and which steps have used them.

Parameters that have had the same fate share a *cell*, so a loop over a thousand parameters is judged like one over two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .cells import Cell, Cycle, Held, Stepped, Wipe, once
from .events import NOWHERE, Added, Backward, Clear, Clip, Edit, Forward, Made, Reused, ScalerStep, Site, Step, Unscale
from .pages import numbers

if TYPE_CHECKING:
    from .judge import Judge

_MOST_HELD = 128
_MOST_REMEMBERED = 512


class Book:
    """Follows the events and tells ``rules`` what they mean."""

    def __init__(self, rules: Judge) -> None:
        """``rules`` has a method for each kind of fact."""
        self._rules = rules
        self._cells: list[Cell] = []
        self._known = 0
        self.cycles: dict[int, Cycle] = {}
        self.steps: dict[int, int] = {}
        self.optimizers: dict[int, Made] = {}
        self.sites: dict[int, Site] = {}
        """Where each optimizer has stepped last."""
        self.attempts: dict[int, int] = {}
        """Steps of each optimizer, those that its scaler skipped included."""
        self.covers: dict[int, int] = {}
        """Pages of each optimizer, as far as it was seen at work."""
        self.newest = 0
        """Number of the newest backward pass."""
        self._zero = self._nonzero = 0
        """Pages whose gradient was last seen to be all zeros, and those where it was not; the others were not seen."""

    def cells(self, pages: int) -> list[Cell]:
        """Return the cells of some pages, split off where a cell covers others, too."""
        if missing := pages & ~self._known:
            self._cells.append(Cell(missing))
            self._known |= missing
        found = []
        for cell in list(self._cells):
            common = cell.pages & pages
            if common == cell.pages:
                found.append(cell)
            elif common:
                found.append(part := cell.part(common))
                self._cells.append(part)
        return found

    def backward(self, event: Backward) -> None:
        """A backward pass begins."""
        if event.values is not None and event.values[1] is not None:  # zeros that no version has told of
            pages, norms = event.values
            zeros = _zeros(pages, norms)
            event.values = None
            event.found &= ~zeros
            self._emptied(zeros)
            self._seen(pages, norms)
            self._rules.verified(event, pages & ~zeros)
        self.newest = event.number
        self._rules.backward(event)
        for cycle in self.cycles.values():
            cycle.others += 1
            cycle.after = 0

    def added(self, event: Added) -> None:
        """A backward pass has added to gradients."""
        backward, pages = event.backward, event.pages
        if not pages:
            return
        self._seen(pages, event.norms)
        backward.zeros |= pages & self._zero
        used = pages & self.covers.get(backward.inside, 0)  # a closure's pass is used by the step that calls it
        cells = self.cells(used) + self.cells(pages & ~used)
        self._rules.adding(backward, cells)
        backward.added |= pages
        backward.during = self.steps.get(backward.inside, 0)
        backward.used |= used
        for cell in cells:
            cell.held.append(Held(backward, backward.inside if cell.pages & used else -1))
            if len(cell.held) > _MOST_HELD:
                del cell.held[4 : _MOST_HELD // 2]
        covered = self.covered()
        for optimizer, cover in self.covers.items():
            self.cycles[optimizer].elsewhere |= pages & ~covered
            if cover & pages:
                cycle = self.cycles[optimizer]
                if backward not in cycle.backwards[-1:]:
                    cycle.others -= 1
                    if len(cycle.backwards) < _MOST_REMEMBERED:
                        cycle.backwards.append(backward)
        self._merge()

    def covered(self) -> int:
        """Return the pages that some optimizer holds."""
        covered = 0
        for cover in self.covers.values():
            covered |= cover
        return covered

    def called(self, event: Forward) -> None:
        """A model was called."""
        for cycle in self.cycles.values():
            cycle.called |= event.pages
            cycle.after |= event.pages if event.grad else 0
        self._rules.forward(event)

    def _seen(self, pages: int, norms: Any) -> None:
        """Note which gradients are all zeros; without norms it is not known."""
        self._zero &= ~pages
        self._nonzero &= ~pages
        if norms is not None:
            self._zero |= (zeros := _zeros(pages, norms))
            self._nonzero |= pages & ~zeros

    def _emptied(self, zeros: int) -> int:
        """Take it in that zeros were found in ``.grad``; return the pages that hold nothing now.

        Somebody has cleared them if one of them had been something else. What a pass itself has left at zero, nobody
        has cleared. Of what was not seen before nobody knows: it holds nothing, and no pass counts as lost.
        """
        unseen = zeros & ~self._zero & ~self._nonzero
        if zeros & self._nonzero:
            self.clear(Clear(NOWHERE, zeros))
            return zeros
        if unseen:
            for cell in self.cells(unseen):
                cell.held, cell.edited = [], False
            self._rules.doubtful(unseen)
            self._merge()
        return unseen

    def clear(self, event: Clear) -> None:
        """Gradients were cleared."""
        lost: list[Backward] = []
        for cell in self.cells(event.pages):
            for held in cell.fresh:
                held.backward.wiped |= cell.pages
                lost.append(held.backward)
            cell.held, cell.edited = [], False
        wipe = Wipe(event, once(lost))
        for optimizer, cover in self.covers.items():
            if cover & event.pages:
                self.cycles[optimizer].cleared = True
                if wipe.lost and len(self.cycles[optimizer].wipes) < _MOST_REMEMBERED:
                    self.cycles[optimizer].wipes.append(wipe)
        self._merge()

    def reused(self, event: Reused) -> None:
        """Pages go to other parameters."""
        self._seen(event.pages, None)
        for cell in self.cells(event.pages):
            cell.held, cell.edited = [], False
        for optimizer in self.covers:
            self.covers[optimizer] &= ~event.pages
        self._merge()

    def edit(self, event: Edit) -> None:
        """Gradients were written to by hand."""
        emptied = self._emptied(_zeros(event.pages, event.norms))
        self._seen(event.pages, event.norms)
        for cell in self.cells(event.pages & ~emptied):
            cell.edited = True

    def made(self, event: Made) -> None:
        """An optimizer was made."""
        self.optimizers[event.optimizer] = event
        self.cycles[event.optimizer] = Cycle()
        self._cover(event.optimizer, event.pages)
        self._rules.made(event)

    def _cover(self, optimizer: int, pages: int) -> None:
        self.covers[optimizer] = pages
        self.cycles.setdefault(optimizer, Cycle())

    def step(self, event: Step) -> None:
        """An optimizer takes a step."""
        optimizer = event.optimizer
        self._cover(optimizer, event.pages)
        self.sites[optimizer] = event.site
        self.steps[optimizer] = self.steps.get(optimizer, 0) + 1
        if not event.scaler:
            self.attempts[optimizer] = self.attempts.get(optimizer, 0) + 1
        cells = self.cells(event.present)
        if not event.closure:
            self._rules.step(Stepped(event, self.steps[optimizer], cells, self.cycles[optimizer]))
        for cell in cells:
            for held in cell.fresh:
                held.backward.during = self.steps[optimizer]
            for held in cell.held:
                held.used_by = optimizer
                held.backward.used |= cell.pages
                held.backward.used_at = held.backward.used_at or self.newest
            cell.edited = False
        self.cycles[optimizer] = Cycle()

    def scaler_step(self, event: ScalerStep) -> None:
        """A scaler has taken a step, or skipped it."""
        self.attempts[event.optimizer] = self.attempts.get(event.optimizer, 0) + 1
        if not event.taken:  # the gradients were inf or NaN; it has had its chance to use them
            for cell in self.cells(event.pages):
                for held in cell.held:
                    held.backward.offered = True
            self.cycles[event.optimizer] = Cycle()
        self._rules.scaler_step(event, self.cells(event.pages))

    def unscale(self, event: Unscale) -> None:
        """Gradients were divided by the loss scale."""
        for cell in self.cells(event.pages):
            for held in cell.held:
                held.unscaled = True

    def clip(self, event: Clip) -> None:
        """Gradients are clipped."""
        self._rules.clip(event, self.cells(event.pages))

    def _merge(self) -> None:
        """Put cells together that hold nothing: most of a loop's life they all do."""
        empty = [cell for cell in self._cells if not cell.held and not cell.edited]
        if len(empty) > 1:
            pages = 0
            for cell in empty:
                pages |= cell.pages
            self._cells = [cell for cell in self._cells if cell.held or cell.edited] + [Cell(pages)]


def _zeros(pages: int, norms: Any) -> int:
    """Return the pages whose norm is exactly 0."""
    if norms is None:
        return 0
    return sum(1 << number for number, norm in zip(numbers(pages), norms, strict=True) if not float(norm))
