"""The event log: what is watched, on which thread, and the events that wait; and what a listener is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from types import FrameType
from typing import Any
from weakref import WeakSet

from torch import Tensor
from torch.optim.optimizer import Optimizer

from ... import _torch
from ..._process import Original, Patches
from ..events import NO_SITE, Backward, Clear, Event, GradEdited, OptimizerMade, ParamSlotReused, Site, Step
from ..frames import call_lines
from ..graphs.autograd_graph import Roots
from ..graphs.graph_leaks import UnusedGraphs
from ..graphs.op_trace import OpTrace
from ..state.names import VariableNames, wrapped_optimizer
from ..state.param_index import ParamIndex, fetch_norms
from ..state.watched import ModuleIndex, OptimizerIndex, WatchedOptimizer


class WatchedThread:
    """The thread that is watched, and those that train beside it; older ones than the watch do not count."""

    def __init__(self) -> None:
        self.ident = 0
        """Python's number for it, 0 for none."""
        self.may_change = False
        """True if the watch may go over to another thread."""
        self.beside: dict[int, str] = {}
        """Threads that trained and were not watched: number -> name."""
        self._first = self._watched = threading.current_thread()
        self._older = WeakSet(threading.enumerate())
        self._older.discard(self._first)

    @property
    def followed(self) -> str:
        """The name of the thread that is watched, "" if it is the one that began the watch."""
        return "" if self._watched is self._first else self._watched.name

    def listen(self) -> None:
        """Take what the thread that calls this does from now on."""
        self.ident = threading.get_ident()

    def ignore(self) -> None:
        """Take nothing any more: whoever has kept one of our functions gets what it stands for."""
        self.ident = 0

    def is_here(self) -> bool:
        """Return whether this is the watching thread."""
        return threading.get_ident() == self.ident

    def runs_elsewhere(self) -> bool:
        """Return whether another thread is watched, and has not ended."""
        return self.may_change and self._watched is not threading.current_thread() and self._watched.is_alive()

    def may_go_over(self) -> bool:
        """Return whether the thread that calls this could be watched instead."""
        return bool(self.ident) and self.may_change and threading.current_thread() not in self._older

    def goes_over(self, *, trained: bool) -> bool:
        """Return whether the thread that calls this, which is about to train, is watched from now on.

        One that is watched and has ``trained`` is left only when it has ended: threads may take turns.
        """
        if self._trains_by_itself():
            if trained and self._watched.is_alive():
                self._note()
            else:
                self._watched = threading.current_thread()
                self.listen()
        return self.is_here()

    def steps_elsewhere(self) -> None:
        """Note a step on a thread that is not watched."""
        if self._trains_by_itself():
            self._note()

    def _trains_by_itself(self) -> bool:
        """Return whether the thread could be watched, and is none of autograd's that works for another."""
        return self.may_go_over() and _torch.current_graph_task() < 0

    def _note(self) -> None:
        self.beside[threading.get_ident()] = threading.current_thread().name


_FIRST_FLUSH, _FLUSH = 24, 512
_MOST_WAITING = 8192
_MOST_LINES = 2048


@dataclass
class Passes:
    """The backward passes so far."""

    count: int = 0
    current: Backward | None = None
    """The one that runs."""
    newest: Backward | None = None
    """The one that began last."""
    replaced: list[Tensor] = field(default_factory=list)
    """Gradients kept alive while a pass with create_graph puts others in their place."""
    grad_calls: int = 0
    """Number of calls of ``torch.autograd.grad``, which add to no ``.grad``."""
    outputs: Roots = field(default_factory=Roots)
    """Outputs of models."""
    unused_graphs: UnusedGraphs = field(default_factory=UnusedGraphs)
    """Graphs of calls in evaluation mode."""
    last_update: int = 0
    """Autograd's number for the first node made after a step, or after a clearing was found."""
    compiled: bool = False
    """True if there is a compiled model whose graph is a single node."""
    most_updates: int = sys.maxsize
    """After so many ``on_enough`` is called, when the next pass begins: no hook of PyTorch's runs then."""
    on_enough: Callable[[], None] = field(default=lambda: None)


class EventLog:
    """Keeps the watched parameters, models and optimizers, and hands events on in batches."""

    def __init__(self, judge: Callable[[list[Event]], None]) -> None:
        """``judge`` takes the events, in order, some hundred at a time."""
        self._judge, self._flush_at = judge, _FIRST_FLUSH
        self.events: list[Event] = []
        """Those that wait."""
        self.index = ParamIndex(self._slot_reused)
        self.models = ModuleIndex(self.index)
        self.optimizers = OptimizerIndex(self.index)
        self.names = VariableNames()
        self.callers: dict[Site, tuple[Site, ...]] = {}
        """Line from which something happened -> the lines that led there when it happened first, itself included."""
        self.thread = WatchedThread()
        self.passes = Passes()
        self.scaler_steps = 0
        """How many calls of a scaler's ``step`` are at work."""
        self.scales = False
        """True if a scaler has scaled a loss."""
        self.scaler_site = NO_SITE
        """Where a scaler has stepped last."""
        self.stepping: list[Step] = []
        """The steps that run, the innermost last."""
        self.steps = 0
        self.trace = OpTrace(self.index)
        self.failure = ""
        """What went wrong in here, "" if nothing did; then nothing is looked at any more."""

    def give_up(self, error: Exception) -> None:
        """Look no further, after a failure of our own; the learner's loop goes on."""
        self.failure = f"{type(error).__name__}: {error}"
        self.thread.ignore()
        self.trace.on = False
        self.events, self.passes.current, self.passes.replaced = [], None, []

    def is_watched_thread(self) -> bool:
        """Return whether this is the watching thread, or one of autograd's that works for it."""
        return self.thread.is_here() or (
            self.passes.current is not None
            and _torch.current_graph_task() >= 0
            # one that Python did not start; a thread of the learner's may be inside a backward pass, too
            and isinstance(threading.current_thread(), threading._DummyThread)
        )

    def emit(self, event: Event) -> None:
        """Add an event; hand all on when there are many, and nothing is half done."""
        self.events.append(event)
        waiting = len(self.events)
        if waiting >= self._flush_at:
            half_done = self.passes.current is not None or self.stepping or self.scaler_steps
            if not half_done or waiting >= _MOST_WAITING:
                self._flush_at = min(_FLUSH, 2 * self._flush_at)
                self.flush()

    def flush(self) -> None:
        """Hand on all events."""
        events, self.events = self.events, []
        fetch_norms(events)
        self._judge(events)

    def forget_unfinished(self) -> None:
        """Forget a step whose closure is at work: without its passes it would look like one that has none."""
        at = next((at for at, event in enumerate(self.events) if event in self.stepping), len(self.events))
        del self.events[at:]
        self.stepping.clear()

    def detect_changes(self, params: int = -1) -> int:
        """See what has happened to gradients outside of PyTorch's own calls; return the parameters that have one."""
        index = self.index
        present, lost, changed = index.changes(params)
        if lost:
            index.with_new_grad &= ~lost
            self.passes.last_update = _torch.sequence_number()
            self.emit(Clear(NO_SITE, lost))
        edited = changed & ~index.expected_changes
        index.expected_changes &= ~changed
        if edited:
            self.passes.last_update = _torch.sequence_number()
            index.wanted_values_after |= edited
            self.emit(GradEdited(edited, index.norms(edited)))
        return present

    def optimizer(self, optimizer: Optimizer, lines: tuple[Site, ...] = ()) -> WatchedOptimizer:
        """Return an optimizer, which is watched from now on; ``lines`` have made it, if that is known.

        What a trainer's wrapper does counts as done by the optimizer inside of it.
        """
        optimizer = wrapped_optimizer(optimizer)
        one = self.optimizers.find(optimizer)
        if one is None:
            one = self.optimizers.add(optimizer)
            kind, site = type(optimizer), lines[0] if lines else NO_SITE
            own = not kind.__module__.startswith("torch.optim")
            self.emit(OptimizerMade(site, one.number, kind.__name__, one.params, own, lines, _settings(optimizer)))
        return one

    def cleared(self, site: Site, params: int) -> None:
        """Note a call of ``zero_grad()``, after it has run."""
        self.note_callers(site)
        self.index.changes(params)  # what happened to them before does not matter any more
        self.index.with_new_grad &= ~params
        self.passes.last_update = _torch.sequence_number()
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

    def find_names(self, frame: FrameType | None, *, optimizer: int = -1, params: int = 0) -> None:
        """Look for the names that something has in the learner's code, unless they are known."""
        if self.names.wants(optimizer=optimizer, params=params):
            self.names.look(frame, self.optimizers.numbers(), self.index.known_bits)

    def _slot_reused(self, bit: int) -> None:
        self.names.forget_params(bit)
        self.emit(ParamSlotReused(bit))


def _settings(optimizer: Optimizer) -> str:
    plain = {name: value for name, value in optimizer.defaults.items() if isinstance(value, (int, float, tuple))}
    return ", ".join(f"{name}={value}" for name, value in plain.items())


def never_raises(look: Callable[..., Any]) -> Callable[..., Any]:
    """Keep a failure of ours out of the learner's loop: for methods of what has a ``log``."""

    @wraps(look)
    def careful(self: Any, *args: Any, **kwargs: Any) -> Any:
        log: EventLog = self.log
        if log.failure:
            return None
        try:
            return look(self, *args, **kwargs)
        except Exception as error:
            return log.give_up(error)

    return careful


class Listener:
    """Replaces some of PyTorch's functions by ones that also write down what happens."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self._inside = False

    def patch(self, patches: Patches) -> None:
        """Put the replacements in."""

    def hooks(self) -> list[Any]:
        """Register hooks, where PyTorch has some; return the handles that remove them."""
        return []

    def around(
        self,
        before: Callable[..., object] | None = None,
        after: Callable[..., object] | None = None,
        *,
        anywhere: bool = False,
    ) -> Callable[[Original], Any]:
        """Return what makes a function that does as before, with a look at what it is given before and after.

        The look after it gets the result first. What other threads than the watched one do counts only ``anywhere``.
        """

        def make(original: Original) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                if before is not None and (anywhere or self.log.is_watched_thread()):
                    self._look(before, *args, **kwargs)
                result = original.call(*args, **kwargs)
                if after is not None and (anywhere or self.log.is_watched_thread()):
                    self._look(after, result, *args, **kwargs)
                return result

            return call

        return make

    def outermost(
        self, after: Callable[..., object], before: Callable[[Any], Any] = lambda owner: None
    ) -> Callable[[Original], Any]:
        """Return what makes a method that does as before, with ``before(object)`` and ``after(object, seen, ...)``.

        What is called inside of it, on whichever object, is not the learner's, and not looked at.
        """

        def make(original: Original) -> Any:
            @wraps(original.call)
            def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
                if self._inside or not self.log.is_watched_thread():
                    return original.call(owner, *args, **kwargs)
                seen = before(owner)
                self._inside = True
                try:
                    return original.call(owner, *args, **kwargs)
                finally:
                    self._inside = False
                    after(owner, seen, *args, **kwargs)

            return call

        return make

    @never_raises
    def _look(self, look: Callable[..., object], *args: Any, **kwargs: Any) -> None:
        look(*args, **kwargs)
