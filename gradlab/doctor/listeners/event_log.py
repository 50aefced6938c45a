"""The event log: what the listeners share, and the events that wait until the rules read them."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from torch import Tensor
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from ... import _torch
from ..events import (
    NO_SITE,
    Backward,
    Clear,
    Event,
    GradEdited,
    OptimizerMade,
    ParamSlotReused,
    Site,
    Step,
    bit_positions,
)
from ..frames import call_lines, outside_constructors
from ..graphs.autograd_graph import Roots
from ..graphs.graph_leaks import UnusedGraphs
from ..state.module_index import ModuleIndex
from ..state.param_index import ParamIndex, fetch_norms
from ..state.weight_marks import WeightMarks
from .names import VariableNames
from .threads import TrainingThreads

_NO_THREAD = 0
_FIRST_FLUSH, _FLUSH = 24, 512
_MANY_OPTIMIZERS = 64
_MOST_WAITING = 8192
_MOST_LINES = 2048


class EventLog:
    """Keeps the watched parameters, models and optimizers, and hands events on in batches."""

    def __init__(self, on_events: Callable[[list[Event]], None]) -> None:
        """``on_events(events)`` gets the events, in order, some hundred at a time."""
        self._on_events = on_events
        self._thread = _NO_THREAD
        self._flush_at = _FIRST_FLUSH
        self._last_index = 0
        self._indices: dict[int, int] = {}
        self._params_of: dict[int, tuple[int, int]] = {}
        self.events: list[Event] = []
        """Those that wait."""
        self.hearers: list[Callable[[Event], None]] = []
        """Who is told of each event at once."""
        self.index = ParamIndex(self._slot_reused)
        self.models = ModuleIndex(self.index)
        self.optimizers: list[weakref.ref[Optimizer]] = []
        self.names = VariableNames()
        self.callers: dict[Site, tuple[Site, ...]] = {}
        """Line from which something happened -> the lines that led there when it happened first, itself included."""
        self.registrations: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """Parameter -> how many optimizers there were when a module got it, and the line that put it there."""
        self.weight_marks = WeightMarks(self.index)
        self.outputs = Roots()
        """Outputs of models."""
        self.scaler_step: Site = NO_SITE
        """Where a scaler has stepped last."""
        self.backwards = 0
        """Number of backward passes so far."""
        self.current: Backward | None = None
        """The pass that runs."""
        self.roots: tuple[Any, ...] = ()
        """What it begins with: its losses."""
        self.newest: Backward | None = None
        """The pass that began last."""
        self.replaced: list[Tensor] = []
        """Gradients kept alive while a pass with create_graph puts others in their place."""
        self.stepping: list[Step] = []
        """The steps that run, the innermost last."""
        self.steps = 0
        self.unused_graphs = UnusedGraphs()
        """Graphs of calls in evaluation mode."""
        self.compiled = False
        """Is there a compiled model whose graph is a single node?"""
        self.in_scaler = 0
        self.scaling = False
        """Has a loss been scaled?"""
        self.scaler: weakref.ref[Any] | None = None
        """The scaler that has scaled last."""
        self.last_update = 0
        """Autograd's number for the first node made after a step, or after a clearing was found."""
        self.with_new_grad = 0
        """Parameters that a backward pass has added to, and that were not cleared since."""
        self.expected_changes = 0
        """Parameters whose change is a clipping."""
        self.wanted_values = 0
        """Parameters whose gradients the rules would like to be looked at when a backward begins."""
        self.wanted_values_after = 0
        """Those on which zeros may come from a clearing or from a backward: looked at when it ends."""
        self.grad_calls = 0
        """Number of calls of ``torch.autograd.grad``, which add to no ``.grad``."""
        self.threads: TrainingThreads | None = None
        """Set where the watch may go over to another thread."""
        self.most_updates = sys.maxsize
        """After so many ``on_enough`` is called, when the next backward pass begins: no hook of PyTorch's runs then."""
        self.on_enough: Callable[[], None] = lambda: None
        self.failure = ""
        """What went wrong in here, "" if nothing did; then nothing is looked at any more."""

    def listen(self) -> None:
        """Take what the thread that calls this does from now on."""
        self._thread = _NO_THREAD if self.failure else threading.get_ident()

    def ignore(self) -> None:
        """Take nothing any more: whoever has kept one of our functions gets what it stands for."""
        self._thread = _NO_THREAD

    def give_up(self, error: Exception) -> None:
        """Look no further, after a failure of our own; the learner's loop goes on."""
        self.failure = f"{type(error).__name__}: {error}"
        self._thread, self.current, self.events, self.replaced, self.roots = _NO_THREAD, None, [], [], ()

    def is_watched_thread(self) -> bool:
        """Is this the watching thread, or one of autograd's that works for it?"""
        return threading.get_ident() == self._thread or (self.current is not None and _torch.current_graph_task() >= 0)

    def begins_pass(self) -> bool:
        """Return whether the backward pass that is about to run is to be watched."""
        if threading.get_ident() != self._thread and not self._goes_over():
            return False
        if self.steps - len(self.stepping) >= self.most_updates and not (self.threads and self.threads.beside):
            self._forget_unfinished()
            self.on_enough()
            return False
        return self.current is None

    def _forget_unfinished(self) -> None:
        """Forget a step whose closure is at work: without its passes it would look like one that has none."""
        for at, event in enumerate(self.events):
            if event in self.stepping:
                del self.events[at:]
                break
        self.stepping.clear()

    def _goes_over(self) -> bool:
        """Another thread is about to train: return whether it is watched from now on."""
        if self.threads is None or self._thread == _NO_THREAD or _torch.current_graph_task() >= 0:
            return False
        if not self.threads.follow(trained=self.backwards > 0):
            return False
        self._thread = threading.get_ident()
        self.index.thread_changed()
        return True

    def may_train_here(self) -> bool:
        """Is this the watching thread, or one that it may go over to?"""
        return self.is_watched_thread() or (
            self._thread != _NO_THREAD and self.threads is not None and not self.backwards
        )

    def steps_elsewhere(self) -> None:
        """Note a step on a thread that is not watched."""
        if self.threads is not None and self._thread != _NO_THREAD and _torch.current_graph_task() < 0:
            self.threads.note()

    def emit(self, event: Event) -> None:
        """Add an event."""
        for hear in self.hearers:
            hear(event)
        self.events.append(event)
        if len(self.events) >= self._flush_at:
            self.flush_if_due()

    def flush_if_due(self) -> None:
        """Hand events on when there are many, and nothing is half done."""
        waiting = len(self.events)
        half_done = self.current is not None or self.stepping or self.in_scaler
        if waiting >= self._flush_at and (not half_done or waiting >= _MOST_WAITING):
            self._flush_at = min(_FLUSH, 2 * self._flush_at)
            self.flush()

    def flush(self) -> None:
        """Hand on all events."""
        events, self.events = self.events, []
        fetch_norms(events)
        self._on_events(events)

    def detect_changes(self, params: int = -1) -> int:
        """See what has happened to gradients outside of PyTorch's own calls; return the parameters that have one."""
        present, lost, changed = self.index.changes(params)
        if lost:
            self.with_new_grad &= ~lost
            self.note_update()
            self.emit(Clear(NO_SITE, lost))
        edited = changed & ~self.expected_changes
        self.expected_changes &= ~changed
        if edited:
            self.note_update()
            self.wanted_values_after |= edited
            self.emit(GradEdited(edited, self.index.norms(edited)))
        return present

    def note_update(self) -> None:
        """Note where autograd's numbers stand at a step or a clearing."""
        self.last_update = _torch.sequence_number()

    def optimizer(self, optimizer: Optimizer, lines: tuple[Site, ...] = ()) -> int:
        """Return the number of an optimizer, which is watched from now on."""
        index = self._indices.get(id(optimizer))
        if index is None or self.optimizers[index]() is not optimizer:
            index = self._indices[id(optimizer)] = self._free_index()
            self.optimizers[index : index + 1] = [weakref.ref(optimizer)]
            self._params_of.pop(id(optimizer), None)  # of one that had this id before
            kind = type(optimizer)
            own = not kind.__module__.startswith("torch.optim")
            site, params = lines[0] if lines else NO_SITE, self.params_of(optimizer)
            self.emit(OptimizerMade(site, index, kind.__name__, params, own, lines, _settings(optimizer)))
        return index

    def _free_index(self) -> int:
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

    def params_of(self, optimizer: Optimizer) -> int:
        """Return the parameters of an optimizer; its groups are gone through again when their number has changed."""
        count = sum([len(group["params"]) for group in optimizer.param_groups])
        known = self._params_of.get(id(optimizer))
        if known is None or known[0] != count:
            known = (count, self.index.bits(p for group in optimizer.param_groups for p in group["params"]))
            self._params_of[id(optimizer)] = known
        return known[1]

    def cleared(self, site: Site, params: int) -> None:
        """Note a call of ``zero_grad()``, after it has run."""
        self.note_callers(site)
        self.index.changes(params)  # what happened to them before does not matter any more
        self.with_new_grad &= ~params
        self.note_update()
        self.emit(Clear(site, params))

    def note_callers(self, site: Site) -> None:
        """Note the lines that led to a line from which something happens, the first time."""
        if site not in self.callers and len(self.callers) < _MOST_LINES:
            self.callers[site] = call_lines(sys._getframe(2))

    def path(self, site: Site) -> tuple[Site, ...]:
        """Return a line and those that led there."""
        return self.callers.get(site, (site,))

    def files(self) -> set[str]:
        """Return the files of the learner's functions from which something happened."""
        return {file for path in self.callers.values() for file, _ in path if file}

    def registered(self, param: Tensor | None, *, again: bool = False) -> None:
        """Note when and where a module got a parameter; ``again`` is for one that comes with a module."""
        if isinstance(param, Tensor) and self.is_watched_thread():
            known = self.registrations.get(param)
            if known is None or again:
                self.registrations[param] = len(self.optimizers), outside_constructors(sys._getframe(2))

    def registered_after(self, params: int, optimizer: int) -> Site | None:
        """Return the line that made one of these parameters after an optimizer was made; None if there is none."""
        for number in bit_positions(params):
            known = self.registrations.get(param) if (param := self.index.param(number)) is not None else None
            if known is not None and known[0] > optimizer:
                site: Site = known[1]
                return site
        return None

    def find_names(self, frame: FrameType | None, *, optimizer: int = -1, params: int = 0) -> None:
        """Look for the names that something has in the learner's code, unless they are known."""
        if self.names.wants(optimizer=optimizer, params=params):
            self.names.look(frame, self.optimizers, self.index)

    def _slot_reused(self, bit: int) -> None:
        self.names.forget_params(bit)
        self.with_new_grad &= ~bit
        self.expected_changes &= ~bit
        self.wanted_values &= ~bit
        self.wanted_values_after &= ~bit
        self.emit(ParamSlotReused(bit))


def _settings(optimizer: Optimizer) -> str:
    plain = {name: value for name, value in optimizer.defaults.items() if isinstance(value, (int, float, tuple))}
    return ", ".join(f"{name}={value}" for name, value in plain.items())
