"""The clerk: what all ears of the doctor share: pages, models, optimizers, and the events that wait to be judged."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from . import graphs
from .events import NOWHERE, Backward, Clear, Edit, Made, Reused, Site, Step
from .models import Models
from .pages import Pages, numbers
from .settling import settle

NO_THREAD = 0
_FIRST_FLUSH, _FLUSH = 24, 512
_MANY_OPTIMIZERS = 64
_MOST_WAITING = 8192
_LOOKS = 12  # how often gradients that were there when a backward began are looked at
_LOOKS_AFTER = 24  # and those that a backward has left: twice as many, for windows of two or more


class Clerk:
    """Keeps the pages and the events, and hands events on in batches."""

    def __init__(self, judge: Callable[[list[Any]], None]) -> None:
        """``judge(events)`` gets the events, in order, some hundred at a time."""
        self._judge = judge
        self._thread = NO_THREAD
        self.pages = Pages(self._reused_page)
        self.models = Models(self.pages)
        self.optimizers: list[weakref.ref[Optimizer]] = []
        self._last_index = 0
        self._indices: dict[int, int] = {}
        self._covers: dict[int, tuple[int, int]] = {}
        self.scaler_step: Site = NOWHERE
        """Where a scaler has stepped last."""
        self._serials: Any = WeakIdKeyDictionary()
        self._registrations: Any = WeakIdKeyDictionary()
        self._serial_count = 0
        self._losses, self._outputs = graphs.Roots(), graphs.Roots()
        self._events: list[Any] = []
        self._flush_at = _FIRST_FLUSH
        self._depth = 0  # of module calls
        self._backwards = self._retained = 0
        self._current: Backward | None = None
        self.newest: Backward | None = None
        """The pass that began last."""
        self._stepping: list[Step] = []
        self._weights: dict[int, int] = {}  # optimizer -> how often its weights had been written to after its last step
        self._in_scaler = self._in_schedule = self._steps = 0
        self._last_update = 0  # autograd's number for the first node made after a step, or after a clearing was found
        self._begun: dict[int, int] = {}  # route -> autograd's number when its last pass began
        self._scaling = False
        self._given = False
        self._full = 0  # pages that a backward pass has added to, and that were not cleared since
        self._absorbed = 0  # pages whose change is a clipping
        self._looks, self._looks_after = _LOOKS, _LOOKS_AFTER
        self._replaced: list[Tensor] = []
        self.suspects = 0
        """Pages on which the judge would like the values to be looked at when a backward begins."""
        self.doubts = 0
        """Pages on which zeros may come from a clearing, or from a backward: its values are looked at when it ends."""
        self.trouble = ""
        """What went wrong in here, "" if nothing did; then nothing is looked at any more."""

    def flush(self) -> None:
        """Hand on the events."""
        events, self._events = self._events, []
        settle(events)
        self._judge(events)

    def give_up(self, error: Exception) -> None:
        """Look no further, after a failure of our own; the learner's loop goes on."""
        self.trouble = f"{type(error).__name__}: {error}"
        self._thread, self._current, self._events, self._replaced = NO_THREAD, None, [], []

    def younger(self, pages: int, optimizer: int) -> bool:
        """Was one of these parameters made after an optimizer was?"""
        params = (self.pages.param(number) for number in numbers(pages))
        return any(self._registrations.get(param, 0) > optimizer for param in params if param is not None)

    def optimizer(self, optimizer: Optimizer, where: Any = NOWHERE) -> int:
        """Return the number of an optimizer, which is watched from now on."""
        index = self._indices.get(id(optimizer))
        if index is None or self.optimizers[index]() is not optimizer:
            index = self._indices[id(optimizer)] = self._index()
            self.optimizers[index : index + 1] = [weakref.ref(optimizer)]
            self._covers.pop(id(optimizer), None)  # of one that had this id before
            kind = type(optimizer)
            own = not kind.__module__.startswith("torch.optim")
            self._emit(Made(where, index, kind.__name__, self._cover(optimizer), own))
        return index

    def _index(self) -> int:
        """Return a number for an optimizer; when there have been many, that of one that is gone."""
        count = len(self.optimizers)
        if count >= _MANY_OPTIMIZERS:
            for offset in range(1, count + 1):
                index = (self._last_index + offset) % count
                if self.optimizers[index]() is None:
                    self._last_index = index
                    return index
        self._last_index = count
        return count

    @property
    def seen(self) -> int:
        """How many backward passes there were."""
        return self._backwards

    def _reused_page(self, page: int) -> None:
        self._full &= ~page
        self._absorbed &= ~page
        self.suspects &= ~page
        self.doubts &= ~page
        self._emit(Reused(page))

    def _emit(self, event: Any) -> None:
        self._events.append(event)
        if len(self._events) >= self._flush_at:
            self._rest()

    def _rest(self) -> None:
        """Hand events on when there are many, and nothing is half done."""
        waiting = len(self._events)
        half_done = self._current is not None or self._stepping or self._in_scaler
        if waiting >= self._flush_at and (not half_done or waiting >= _MOST_WAITING):
            self._flush_at = min(_FLUSH, 2 * self._flush_at)
            self.flush()

    def _mine(self) -> bool:
        """Is this the watching thread, or one of autograd's that works for it?"""
        return threading.get_ident() == self._thread or (
            self._current is not None and torch._C._current_graph_task_id() >= 0
        )

    def _cover(self, optimizer: Optimizer) -> int:
        """Return the pages of an optimizer; its groups are gone through again when their number has changed."""
        count = sum(len(group["params"]) for group in optimizer.param_groups)
        known = self._covers.get(id(optimizer))
        if known is None or known[0] != count:
            known = (count, self.pages.of(p for group in optimizer.param_groups for p in group["params"]))
            self._covers[id(optimizer)] = known
        return known[1]

    def _updated(self) -> None:
        self._last_update = torch._C._autograd._get_sequence_nr()

    def _scan(self, pages: int = -1) -> int:
        """See what has happened to gradients outside of PyTorch's own calls; return the pages that have one."""
        present, lost, changed = self.pages.look(pages)
        if lost:
            self._full &= ~lost
            self._updated()
            self._emit(Clear(NOWHERE, lost))
        edited = changed & ~self._absorbed
        self._absorbed &= ~changed
        if edited:
            self._updated()
            self.doubts |= edited
            self._emit(Edit(edited, self.pages.norms(edited)))
        return present
