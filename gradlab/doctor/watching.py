"""``watch``, the doctor's context manager, and the sentences of a report that summarize the watch."""

from __future__ import annotations

import os
import threading
import warnings
from contextlib import ExitStack
from multiprocessing.process import BaseProcess
from textwrap import shorten
from typing import Any

import torch
from torch import nn

from .. import _torch
from .._checks import SMALLEST_FLOAT, number, whole_number
from .._frames import Owner, code_owner, raised_at
from .._process import Original, Patches, main_thread
from ..formatting import number_of
from .events import MANUAL_UPDATE, Backward, Clip, Forward, Mode, Schedule, Step
from .finding import Report
from .frames import strip_doctor_frames
from .rules.known_errors import KnownErrors
from .rules.torch_warnings import TorchWarnings
from .runner import RuleRunner

_HELPERS = ("torch.utils.data.", "multiprocessing.managers")
"""Prefixes of the names of modules whose child processes do not train."""


class watch(Report):  # noqa: N801 - used as `with watch(...) as report:`, like torch.no_grad()
    """A context manager that watches a training loop and reports what is wrong with it.

    Write ``with watch(model, optimizer) as report: train()``, then read ``report``, a Report. Without arguments,
    models and optimizers are found as they are used. The loop's results stay the same, bit for bit, and PyTorch's
    patched functions are restored when the block ends, even if it raises. After ``updates`` calls to ``step()``, or
    after ``seconds`` seconds, the watch ends early, at the next backward pass, and the rest of the block runs at full
    speed. Raises TypeError or ValueError for an argument that is not allowed, and RuntimeError if nested in itself.
    """

    def __init__(self, *model_and_optimizers: Any, updates: int | None = None, seconds: float | None = None) -> None:
        super().__init__()
        for target in model_and_optimizers:
            if not isinstance(target, (nn.Module, torch.optim.Optimizer)):
                allowed = "modules and optimizers (torch.nn.Module, torch.optim.Optimizer)"
                raise TypeError(f"watch: positional arguments must be {allowed}, got {target!r}")
        if updates is not None:
            updates = whole_number("watch: updates", updates, 1)
        if seconds is not None:
            allowed, longest = "a number of seconds above 0", threading.TIMEOUT_MAX
            seconds = number("watch: seconds", seconds, SMALLEST_FLOAT, longest, allowed=allowed)
        self._targets = model_and_optimizers
        self._updates, self._seconds = updates, seconds
        self._runner: RuleRunner | None = None
        self._stops = ExitStack()
        self.processes = 0
        """Number of processes that this one has started with multiprocessing, except for data loaders and managers."""
        self.trained = False
        """True if the watched thread of this process has trained anything."""

    def __enter__(self) -> watch:
        if self._runner is not None:
            raise RuntimeError("watch: this object is already watching; make another one for a nested loop")
        # judged stays False until the end: a signal may end the program before the watch is summarized
        vars(self).update(vars(Report(missing=[str(text) for text in _torch.missing("doctor")], judged=False)))
        self.processes, self._process = 0, os.getpid()
        runner = RuleRunner()
        log = runner.log
        for target in self._targets:
            if isinstance(target, nn.Module):
                log.models.see(target)
            else:
                log.optimizer(target)
        log.passes.on_enough = self._end_early
        if self._updates is not None:
            log.passes.most_updates = self._updates
        if self._seconds is not None:
            clock = threading.Timer(self._seconds, setattr, [log.passes, "most_updates", -1])
            clock.daemon = True
            try:
                clock.start()
            except RuntimeError:  # for example in a browser
                message = "watch: seconds needs a thread, and no thread can be started here; use updates"
                raise ValueError(message) from None
            self._stops.callback(clock.cancel)
        self._stops.enter_context(main_thread.hold())  # so that no lab trains during the watch
        log.thread.may_change = True
        self._warned = TorchWarnings(runner.context)
        patches = Patches((BaseProcess, "start", self._start_process), (warnings, "showwarning", self._warned.hear))
        self._stops.enter_context(patches)
        runner.start()
        self._stops.callback(runner.stop)
        self._runner = runner
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            strip_doctor_frames(error)
        self._end(error)

    def _start_process(self, original: Original) -> Any:
        def start(process: BaseProcess) -> None:
            target = getattr(process, "_target", None)
            helper = str(getattr(target, "__module__", "")).startswith(_HELPERS)
            if os.getpid() == self._process and not helper:
                self.processes += 1
                self._follow(process)
            original.call(process)

        return start

    def _follow(self, process: BaseProcess) -> None:
        """Do nothing. A subclass can override this method to prepare ``process``, which is about to start."""

    def _end_early(self) -> None:
        self._end(None, early=True)

    def _end(self, error: BaseException | None, *, early: bool = False) -> None:
        runner, self._runner = self._runner, None
        self._targets = ()  # so that the report does not keep a model alive
        if runner is None:
            return
        self._stops.close()
        if os.getpid() != self._process:  # this is a forked worker, and its parent process reports
            return
        log, context = runner.log, runner.context
        try:
            runner.end(normal=error is None and not early)
            if error is not None:
                KnownErrors(context).explain(error)
            self._warned.explain()
            context.look_for_edits()
        except Exception as failure:
            log.give_up(failure)
        try:
            passes, beside = log.passes, [*log.thread.beside.values()]
            self.findings = [] if beside and log.thread.followed else runner.findings()
            self.trained = bool(passes.count or log.steps or passes.grad_calls)
            self.judged = self.trained and not beside
            self.ended = ending_words(error)
            self.watched = watched_words(runner, beside, ended=bool(self.ended), processes=self.processes)
            self.checked = checked_words(runner, beside)
        except Exception as failure:
            log.give_up(failure)
        if early:
            self.watched += " The watch ended early, at the limit that you set, and the program went on without it."
        if context.lost_places:
            self.watched += f" The doctor failed while it searched for the line to edit ({context.lost_places[0]})."
        if log.failure:
            self.judged = False
            self.watched += f" The doctor failed and stopped watching ({log.failure})."


_MOST_NAMED = 4  # largest number of optimizers or threads that a sentence names
_MOST_CHARACTERS = 100  # length to which an error's message is shortened
_COUNTED: dict[type, tuple[str, str]] = {
    Backward: ("backward pass", "es"),
    Step: ("step", "s"),
    Clip: ("clip", "s"),
    Schedule: ("scheduler step", "s"),
    Forward: ("model call", "s"),
    Mode: ("train() or eval() call", "s"),
}
_COMPILED = (
    "the inside of the compiled model, for a softmax or sigmoid before the loss, shapes that broadcast, and the "
    "operation of a NaN"
)


def watched_words(runner: RuleRunner, beside: list[str], *, ended: bool, processes: int) -> str:
    """Return a summary of the watch, with counts; ``beside`` has the names of the threads that trained unwatched."""
    passes, steps, followed = runner.log.passes, runner.log.steps, runner.log.thread.followed
    if beside and followed:
        return (
            f"{1 + len(beside)} threads trained ({_few([followed, *beside])}), and the doctor can follow only one. "
            "Let a single thread train, for example with max_workers=1, and run it again."
        )
    if passes.count or steps:
        where = f"the thread {followed}: " if followed else ""
        text = f"Watched {where}{number_of(passes.count, 'backward pass', 'es')}, {_updates(runner)}."
        processes = 0
    elif passes.grad_calls:
        calls = number_of(passes.grad_calls, "call")
        return f"No backward() and no step: {calls} of torch.autograd.grad, which do not change .grad."
    elif ended:
        text = "No backward pass and no step."
    else:
        text = "Nothing was trained in this process while the doctor watched: no backward pass and no step."
    if beside:
        text += f" Other threads also trained and were not watched ({_few(beside)})."
    elif processes:
        started = number_of(processes, "process", "es")
        text += (
            f" The training may have run in the {started} that this one started."
            " Use watch() inside the function that the process runs."
        )
    return text


def _few(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMED])


def _updates(runner: RuleRunner) -> str:
    context, state = runner.context, runner.context.state
    if len(state.optimizers) > _MOST_NAMED:
        updates = number_of(sum(state.step_calls.values()), "update")
        return f"{updates} of {number_of(len(state.optimizers), 'optimizer')}"
    steps = [
        f"{number_of(state.step_calls.get(number, 0), 'update')} "
        + ("by your own lines" if number == MANUAL_UPDATE else f"of {context.full_name(number)}")
        for number in state.optimizers
    ]
    return ", ".join(steps) or "no optimizer"


def ending_words(error: BaseException | None) -> str:
    """Return a phrase such as "The block ended with ValueError in line 12 (no label)", or "" for None or SystemExit."""
    if error is None or isinstance(error, SystemExit):  # the exit code reports it
        return ""
    site = raised_at(error, lambda file: code_owner(file) is Owner.USER)
    lines = str(error).strip().splitlines()
    where = f" in line {site[1]}" if site else ""
    why = f" ({shorten(lines[0].partition(' (')[0], _MOST_CHARACTERS)})" if lines else ""
    return f"The block ended with {type(error).__name__}{where}{why}"


def checked_words(runner: RuleRunner, beside: list[str]) -> str:
    """Return a report's last line: counts of checked events and the unjudged parts, or "" if nothing was trained."""
    log, made_by = runner.log, runner.context.state.optimizers.values()
    if not (log.passes.count or log.steps):
        return ""
    parts = [number_of(runner.counts[kind], *forms) for kind, forms in _COUNTED.items() if runner.counts[kind]]
    parts += [f"{number_of(runner.looks, 'loss', 'es')} examined in detail"] if runner.looks else []
    kinds = sorted({maker.kind for maker in made_by if maker.is_custom_class and maker.optimizer != MANUAL_UPDATE})
    reasons = [
        _COMPILED if log.passes.compiled else "",
        f"the inside of the step of {_few(kinds)}, which is not PyTorch's" if kinds else "",
        f"gradients that your code changed ({number_of(runner.edits, 'time')})" if runner.edits else "",
        f"the other threads that trained ({_few(beside)})" if beside else "",
        f"which terms of a loss reach the weights ({log.trace.failure})" if log.trace.failure else "",
    ]
    left = "; ".join(filter(None, reasons))
    return f"Checked: {', '.join(parts)}." + (f" Not judged: {left}." if left else "")
