"""The event log: what is watched, and the events that wait until the rules read them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

from torch import Tensor
from torch.optim.optimizer import Optimizer

from ... import _torch
from ..events import NO_SITE, Backward, Clear, Event, GradEdited, OptimizerMade, ParamSlotReused, Site, Step
from ..frames import call_lines
from ..graphs.autograd_graph import Roots
from ..graphs.graph_leaks import UnusedGraphs
from ..graphs.op_trace import OpTrace
from ..state.names import VariableNames, wrapped_optimizer
from ..state.param_index import ParamIndex, fetch_norms
from ..state.watched import ModuleIndex, OptimizerIndex, WatchedOptimizer
from .threads import WatchedThread

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
        self.trace = OpTrace(self.index, self.give_up)
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
