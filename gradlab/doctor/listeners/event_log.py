"""The log of watched objects and pending events, and the base class of the listeners that fill the log."""

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

_Callback = Callable[..., object]
_FIRST_FLUSH, _FLUSH = 24, 512  # events
_MOST_PENDING = 8192
_MOST_LINES = 2048


class WatchedThread:
    """The thread that is watched, and a record of other threads that started and trained during the watch."""

    def __init__(self) -> None:
        self.ident = 0
        """Python's identifier of the watched thread; 0 if there is none."""
        self.may_change = False
        """True if the watch may switch to another thread."""
        self.beside: dict[int, str] = {}
        """Identifier of a thread that trained and was not watched -> its name."""
        self._first = self._watched = threading.current_thread()
        self._older = WeakSet(threading.enumerate())
        self._older.discard(self._first)

    @property
    def followed(self) -> str:
        """The name of the watched thread, or "" if the watch was begun on that thread."""
        return "" if self._watched is self._first else self._watched.name

    def listen(self) -> None:
        """Watch the calling thread."""
        self.ident = threading.get_ident()

    def ignore(self) -> None:
        """Watch no thread, so that patched functions that are still referenced only call the originals."""
        self.ident = 0

    def is_here(self) -> bool:
        """Return whether the calling thread is the watched one."""
        return threading.get_ident() == self.ident

    def runs_elsewhere(self) -> bool:
        """Return whether another thread is watched and is still running."""
        return self.may_change and self._watched is not threading.current_thread() and self._watched.is_alive()

    def may_go_over(self) -> bool:
        """Return whether the watch may switch to the calling thread."""
        return bool(self.ident) and self.may_change and threading.current_thread() not in self._older

    def goes_over(self, *, trained: bool) -> bool:
        """Watch the calling thread, which is about to train, if that is allowed, and return whether it is watched now.

        If the previous thread has ``trained``, it is replaced only after it has ended, since threads may take turns.
        """
        if self._trains_by_itself():
            if trained and self._watched.is_alive():
                self.steps_elsewhere()
            else:
                self._watched = threading.current_thread()
                self.listen()
        return self.is_here()

    def steps_elsewhere(self) -> None:
        """Record the calling thread as one that trains but is not watched."""
        if self._trains_by_itself():
            self.beside[threading.get_ident()] = threading.current_thread().name

    def _trains_by_itself(self) -> bool:
        return self.may_go_over() and _torch.current_graph_task() < 0


@dataclass
class Passes:
    """A record of the backward passes so far."""

    count: int = 0
    current: Backward | None = None
    """The pass that is running; None between passes."""
    newest: Backward | None = None
    replaced: list[Tensor] = field(default_factory=list)
    """Gradients that are kept alive while a pass with ``create_graph`` replaces them."""
    grad_calls: int = 0
    """Number of calls to ``torch.autograd.grad``, which do not change ``.grad``."""
    outputs: Roots = field(default_factory=Roots)
    """The outputs of models, as roots of graphs."""
    unused_graphs: UnusedGraphs = field(default_factory=UnusedGraphs)
    last_update: int = 0
    """Autograd's sequence number at the last step, or when gradients were last cleared or edited."""
    compiled: bool = False
    """True if a loss was computed by a compiled model, whose graph is a single node."""
    most_updates: int = sys.maxsize
    """Number of steps after which the next pass calls ``on_enough``. A step cannot, since its hooks still run."""
    on_enough: Callable[[], None] = field(default=lambda: None)


class EventLog:
    """Holds the watched parameters, models and optimizers, and passes events in batches to the function ``judge``."""

    def __init__(self, judge: Callable[[list[Event]], None]) -> None:
        """Create a log that passes its events to ``judge`` in order, in batches that grow from 24 to 512 events."""
        self._judge, self._flush_at = judge, _FIRST_FLUSH
        self.events: list[Event] = []
        """Events that have not been passed on yet."""
        self.index = ParamIndex(self._slot_reused)
        self.models = ModuleIndex(self.index)
        self.optimizers = OptimizerIndex(self.index)
        self.names = VariableNames()
        self.callers: dict[Site, tuple[Site, ...]] = {}
        """Line of an event -> the learner's lines that led to the first event there, the line itself first."""
        self.thread = WatchedThread()
        self.passes = Passes()
        self.scaler_steps = 0
        """Number of calls to a GradScaler's ``step`` that are running."""
        self.scales = False
        """True if a GradScaler has scaled a loss."""
        self.scaler_site = NO_SITE
        """Line of the last step of a GradScaler."""
        self.stepping: list[Step] = []
        """Steps that are running, the innermost last."""
        self.steps = 0
        self.trace = OpTrace(self.index)
        self.failure = ""
        """The doctor's own error that ended the watch; "" if there was none."""

    def give_up(self, error: Exception) -> None:
        """Stop watching because of an error in the doctor itself, and let the learner's loop continue."""
        self.failure = f"{type(error).__name__}: {error}"
        self.thread.ignore()
        self.trace.on = False
        self.events, self.passes.current, self.passes.replaced = [], None, []

    def is_watched_thread(self) -> bool:
        """Return whether the calling thread is the watched one, or a thread of autograd that works for it."""
        return self.thread.is_here() or (
            self.passes.current is not None
            and _torch.current_graph_task() >= 0
            # unlike the learner's threads, which may also run a backward pass, autograd's are not started by Python
            and isinstance(threading.current_thread(), threading._DummyThread)
        )

    def emit(self, event: Event) -> None:
        """Add an event. Flush the events if there are many and no pass or step is running, or if there are too many."""
        self.events.append(event)
        pending = len(self.events)
        if pending >= self._flush_at:
            running = self.passes.current is not None or self.stepping or self.scaler_steps
            if not running or pending >= _MOST_PENDING:
                self._flush_at = min(_FLUSH, 2 * self._flush_at)
                self.flush()

    def flush(self) -> None:
        """Pass all pending events to ``judge``, the function given to the constructor."""
        events, self.events = self.events, []
        fetch_norms(events)
        self._judge(events)

    def forget_unfinished(self) -> None:
        """Remove a step whose closure is running, and later events, since the step would seem to have no passes."""
        index = next((index for index, event in enumerate(self.events) if event in self.stepping), len(self.events))
        del self.events[index:]
        self.stepping.clear()

    def detect_changes(self, params: int = -1) -> int:
        """Emit events for gradients that the learner's code cleared or edited. Return the parameters with gradients."""
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
        """Return the record of an optimizer, or of the optimizer inside a trainer's wrapper, and watch it from now on.

        ``lines`` are the learner's lines that led to the optimizer's creation, the innermost first, or () if unknown.
        """
        optimizer = wrapped_optimizer(optimizer)
        watched = self.optimizers.find(optimizer)
        if watched is None:
            watched = self.optimizers.add(optimizer)
            kind, params, site = type(optimizer), watched.params, lines[0] if lines else NO_SITE
            custom = not kind.__module__.startswith("torch.optim")
            plain = {key: value for key, value in optimizer.defaults.items() if isinstance(value, (int, float, tuple))}
            settings = ", ".join(f"{key}={value}" for key, value in plain.items())
            self.emit(OptimizerMade(site, watched.number, kind.__name__, params, custom, lines, settings))
        return watched

    def cleared(self, site: Site, params: int) -> None:
        """Record a call to ``zero_grad()`` after it has run."""
        self.note_callers(site)
        self.index.changes(params)  # changes up to this clear are not reported
        self.index.with_new_grad &= ~params
        self.passes.last_update = _torch.sequence_number()
        self.emit(Clear(site, params))

    def note_callers(self, site: Site) -> None:
        """Record the learner's lines that led to ``site``, unless they are already recorded."""
        if site not in self.callers and len(self.callers) < _MOST_LINES:
            self.callers[site] = call_lines(sys._getframe(2))

    def path(self, site: Site) -> tuple[Site, ...]:
        """Return ``site`` and the learner's lines that led to it, the innermost first, as far as they are known."""
        return self.callers.get(site, (site,))

    def files(self) -> set[str]:
        """Return the names of the learner's files that contain lines which led to events."""
        return {file for path in self.callers.values() for file, _ in path if file}

    def find_names(self, frame: FrameType | None, *, optimizer: int = -1, params: int = 0) -> None:
        """Search the learner's variables for the names of an optimizer and of parameters, unless they are known."""
        if self.names.wants(optimizer=optimizer, params=params):
            self.names.collect(frame, self.optimizers.numbers(), self.index.known_bits)

    def _slot_reused(self, bit: int) -> None:
        self.names.forget_params(bit)
        self.emit(ParamSlotReused(bit))


def never_raises(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method of an object that has a ``log``, so that an error in the method ends only the watch."""

    @wraps(method)
    def careful(self: Any, *args: Any, **kwargs: Any) -> Any:
        log: EventLog = self.log
        if log.failure:
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            return log.give_up(error)

    return careful


class Listener:
    """The base class of listeners, which replace PyTorch's functions with functions that also emit events."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self._nested = False

    def patch(self, patches: Patches) -> None:
        """Replace functions of PyTorch through ``patches``, which restores them at the end of the watch."""

    def hooks(self) -> list[Any]:
        """Register hooks, if the listener has any, and return their handles."""
        return []

    def around(
        self, before: _Callback | None = None, after: _Callback | None = None, *, anywhere: bool = False
    ) -> Callable[[Original], Any]:
        """Return a function that makes a wrapper around an Original, with calls to ``before`` and ``after``.

        ``before(*args)`` and ``after(result, *args)`` run on the watched thread only, unless ``anywhere`` is True.
        """

        def make(original: Original) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                if before is not None and (anywhere or self.log.is_watched_thread()):
                    self._call_safely(before, *args, **kwargs)
                result = original.call(*args, **kwargs)
                if after is not None and (anywhere or self.log.is_watched_thread()):
                    self._call_safely(after, result, *args, **kwargs)
                return result

            return call

        return make

    def outermost(self, after: _Callback, before: _Callback = lambda owner: None) -> Callable[[Original], Any]:
        """Return a function that wraps an Original in ``value = before(owner)`` and ``after(owner, value, *args)``.

        Only the learner's call is wrapped: calls inside the original, on any object, skip ``before`` and ``after``.
        """

        def make(original: Original) -> Any:
            @wraps(original.call)
            def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
                if self._nested or not self.log.is_watched_thread():
                    return original.call(owner, *args, **kwargs)
                value = before(owner)
                self._nested = True
                try:
                    return original.call(owner, *args, **kwargs)
                finally:
                    self._nested = False
                    after(owner, value, *args, **kwargs)

            return call

        return make

    @never_raises
    def _call_safely(self, callback: _Callback, *args: Any, **kwargs: Any) -> None:
        callback(*args, **kwargs)
