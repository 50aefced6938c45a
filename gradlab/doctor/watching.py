"""watch: the doctor listens to a loop of the learner's own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from multiprocessing.process import BaseProcess
from typing import Any
from weakref import WeakSet

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import Optimizer

from .. import _torch
from .._checks import SMALLEST_FLOAT, number, whole_number
from .._process import ThreadHook, main_thread
from ..formatting import number_of
from .events import MANUAL_UPDATE
from .finding import Report
from .frames import strip_doctor_frames
from .listeners.child_processes import ChildProcesses
from .listeners.monkeypatch import Below, Listener, MonkeyPatches
from .listeners.threads import OtherThreads
from .rules import RuleContext, check_codes
from .rules.known_errors import KnownErrors
from .rules.runner import RuleRunner

_MOST_NAMED = 4  # optimizers
_COMPILED = (
    "The inside of the compiled model was not looked at for a softmax or sigmoid before the loss, shapes that "
    "broadcast, and the operation of a NaN."
)


class watch(Report):  # noqa: N801 - used as `with watch(...) as report:`, like torch.no_grad()
    """A context manager that watches a training loop and says in plain words what is wrong with it.

    ``with watch(model, optimizer) as report: train()``, then read ``report``; it is a Report. With nothing named,
    models and optimizers are found as they are used. The loop computes what it would have computed, bit for bit; when
    the block ends, also by an exception, everything is as it was before. After ``updates`` calls of ``step()``, or
    after ``seconds``, the watch ends early, with the next backward pass, and the block goes on at full speed. ``also``
    names codes that are reported only where they are asked for. Raises TypeError or ValueError that names the argument,
    the value and what is allowed.
    """

    def __init__(
        self,
        *model_and_optimizers: Any,
        updates: int | None = None,
        seconds: float | None = None,
        also: Collection[str] = (),
    ) -> None:
        """Check what is to be watched."""
        super().__init__()
        for one in model_and_optimizers:
            if not isinstance(one, (nn.Module, torch.optim.Optimizer)):
                raise TypeError(
                    f"watch: give it modules and optimizers (torch.nn.Module, torch.optim.Optimizer), got {one!r}"
                )
        if updates is not None:
            updates = whole_number("watch: updates", updates, 1)
        if seconds is not None:
            allowed = "a number of seconds above 0"
            seconds = number("watch: seconds", seconds, SMALLEST_FLOAT, threading.TIMEOUT_MAX, allowed=allowed)
        check_codes(also, "watch: also")
        self._given = model_and_optimizers
        self._updates, self._seconds, self._also = updates, seconds, also
        self._listeners: list[Listener] = []
        self._runner: RuleRunner | None = None
        self._follow: Callable[[BaseProcess], Callable[[], None]] | None = None
        self._stops = ExitStack()
        self.rank_norms: dict[str, float] = {}
        """Norms of the gradients that DistributedDataParallel makes alike: number of an update -> norm."""
        self.trained = False
        """Has the watched thread of this process trained anything?"""

    def attach(self, listener: Listener) -> None:
        """Have another listener on the log of this watch; call it before the block begins."""
        self._listeners.append(listener)

    def __enter__(self) -> watch:
        """Begin to watch, with an empty report."""
        if self._runner is not None:
            raise RuntimeError("watch: this one is already watching; make another for a loop inside the loop")
        self.findings, self.watched, self.judged = [], "", True
        self.missing = [str(one) for one in _torch.missing("doctor")]
        runner = self._runner = RuleRunner()
        log = runner.context.log
        self._process = os.getpid()
        for listener in self._listeners:
            runner.listener.add(listener)
        for one in self._given:
            if isinstance(one, nn.Module):
                log.models.see(one)
            else:
                log.optimizer(one)
        self._stops.enter_context(main_thread.hold())  # labs that play beside it are none of its loop
        log.thread.others = OtherThreads()
        log.passes.on_enough = self._end_early
        if self._updates is not None:
            log.passes.most_updates = self._updates
        if self._seconds is not None:
            clock = threading.Timer(self._seconds, setattr, [log.passes, "most_updates", -1])
            clock.daemon = True
            try:
                clock.start()
            except RuntimeError:  # as in a browser's tab
                self._runner = None
                raise ValueError(
                    "watch: seconds needs a thread, and no thread can be started here; use updates"
                ) from None
            self._stops.callback(clock.cancel)
        self._children = ChildProcesses(self._follow)
        self._children.start()
        self._stops.callback(self._children.stop)
        ranks = RankGradients()
        ranks.start()
        self._stops.callback(ranks.stop)
        self.rank_norms = ranks.norms
        runner.listener.start()
        self._stops.callback(runner.listener.stop)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Stop watching and write the report."""
        self._end(error, early=False)
        if error is not None:
            _strip_all(error)

    def _end_early(self) -> None:
        """Stop watching inside the block."""
        self._end(None, early=True)

    def _end(self, error: BaseException | None, *, early: bool) -> None:
        runner, self._runner = self._runner, None
        self._given, self._listeners = (), []  # a report keeps no model alive
        if runner is None:
            return
        self._stops.close()
        if os.getpid() == self._process:  # a forked worker says nothing: its parent reports
            self._conclude(runner, error, early=early)

    def _conclude(self, runner: RuleRunner, error: BaseException | None, *, early: bool) -> None:
        log = runner.context.log
        try:
            runner.end(normal=error is None and not early)
            if error is not None:
                KnownErrors(runner.context).explain(error)
            runner.context.look_for_edits()
        except Exception as failure:
            log.give_up(failure)
        try:
            self._summarize(runner)
        except Exception as failure:
            log.give_up(failure)
        self.judged = self.judged and not log.failure
        if early:
            self.watched += " Then the watch ended early, as asked, and the program went on without it."
        if runner.context.lost_places:
            self.watched += f" The doctor itself failed to look for a place to edit ({runner.context.lost_places[0]})."
        if log.failure:
            self.watched += f" The doctor itself failed and stopped looking ({log.failure})."

    def _summarize(self, runner: RuleRunner) -> None:
        log = runner.context.log
        assert log.thread.others is not None  # since the watch began
        beside, followed = [*log.thread.others.beside.values()], log.thread.others.followed
        self.findings = [] if beside and followed else runner.findings(self._also)
        self.trained = bool(log.passes.count or log.steps or log.passes.grad_calls)
        self.judged = self.trained and not beside
        self.watched = _summary(runner.context, followed, beside)
        if not self.trained and not beside:
            self.watched += _hint_at_children(self._children)


def _strip_all(error: BaseException) -> None:
    """Take the doctor's frames out of the traceback of an error, and of those that have led to it."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = strip_doctor_frames(one.__traceback__)
            waiting += [one.__cause__, one.__context__]


def _summary(context: RuleContext, followed: str, beside: list[str]) -> str:
    state, log = context.state, context.log
    if beside and followed:
        return (
            f"{1 + len(beside)} threads trained ({', '.join([followed, *beside][:_MOST_NAMED])}), and the"
            " doctor can follow only one. Let a single thread train, such as with max_workers=1, and run it again."
        )
    steps = [
        f"{number_of(state.step_calls.get(at, 0), 'update')} "
        + ("by your own lines" if at == MANUAL_UPDATE else f"of {context.full_name(at)}")
        for at in state.optimizers
    ]
    if len(steps) > _MOST_NAMED:
        updates = number_of(sum(state.step_calls.values()), "update")
        steps = [f"{updates} of {number_of(len(steps), 'optimizer')}"]
    if not log.passes.count and not log.steps:
        if log.passes.grad_calls:
            calls = number_of(log.passes.grad_calls, "call")
            return f"No backward() and no step: {calls} of torch.autograd.grad, which fill no .grad."
        words = "Nothing was trained in this process while the doctor watched: no backward pass and no step."
    else:
        where = f"the thread {followed}: " if followed else ""
        words = f"Watched {where}{number_of(log.passes.count, 'backward pass', 'es')}" + (
            f", {', '.join(steps)}." if steps else ", no optimizer."
        )
    if beside:
        words += f" Other threads trained, too, and were not watched ({', '.join(beside[:_MOST_NAMED])})."
    return f"{words} {_COMPILED}" if log.passes.compiled else words


def _hint_at_children(children: ChildProcesses) -> str:
    """Return where the training may have been, as a sentence that says what to run instead; "" if nothing is known."""
    if children.commands:
        return f" It was started as another program, which the doctor can watch by itself:  {children.commands[0]}"
    if not children.names:
        return ""
    names = ", ".join(children.names[:_MOST_NAMED])
    if children.follows:
        return f" Nor did the doctor see any training in the processes that it has started ({names})."
    return (
        f" The training may have been in other processes ({names}). Use watch() inside the function that they"
        " run, or run the whole script with gradlab doctor, which follows processes of multiprocessing."
    )


class RankGradients:
    """Keeps the norm of those gradients at updates 1, 2, 4, 8, ..., for a comparison with other ranks."""

    def __init__(self) -> None:
        self.norms: dict[str, float] = {}
        """Number of an update -> norm."""
        self._wrapped: WeakSet[DistributedDataParallel] = WeakSet()
        self._patches = MonkeyPatches()
        self._handle: ThreadHook | None = None
        self._steps = 0

    def start(self) -> None:
        """Wait for a model that is wrapped; without one nothing is looked at."""
        self._patches.replace(DistributedDataParallel, "__init__", self._init)

    def stop(self) -> None:
        """Put everything back."""
        self._patches.undo()
        if self._handle is not None:
            self._handle.remove()

    def _init(self, below: Below) -> Any:
        def init(wrapper: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
            below.call(wrapper, *args, **kwargs)
            self._wrapped.add(wrapper)
            if self._handle is None:
                self._handle = ThreadHook(self._before_step, "optimizer_pre_hooks")

        return init

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self._steps += 1
        if self._steps.bit_count() == 1:  # a power of two
            with suppress(Exception):  # no failure of ours may reach the learner's loop
                self._measure(optimizer)

    def _measure(self, optimizer: Optimizer) -> None:
        shared = {id(param) for wrapper in self._wrapped for param in wrapper.module.parameters()}
        params = [param for group in optimizer.param_groups for param in group["params"] if id(param) in shared]
        grads = [param.grad.detach() for param in params if param.grad is not None and not param.grad.is_sparse]
        with _torch.outside_dispatch_modes():
            norms = [torch.linalg.vector_norm(grad, dtype=torch.float64).cpu() for grad in grads]
            if norms:
                self.norms[str(self._steps)] = float(torch.linalg.vector_norm(torch.stack(norms)))
