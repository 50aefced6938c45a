"""watch: the doctor listens to a loop of the learner's own."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

import torch
from torch import nn

from .. import _torch
from ..formatting import number_of
from .callsite import strip_doctor_frames
from .events import MANUAL_UPDATE
from .finding import Report
from .known_errors import KnownErrors
from .rule_runner import RuleRunner

_MOST_NAMED = 4  # optimizers


class watch(Report):  # noqa: N801 - used as `with watch(...) as report:`, like torch.no_grad()
    """A context manager that watches a training loop and says in plain words what is wrong with it.

    ``with watch(model, optimizer) as report: train()``, then read ``report``; it is a Report. With nothing named,
    models and optimizers are found as they are used. The loop computes what it would have computed, bit for bit; when
    the block ends, also by an exception, everything is as it was before. Raises TypeError for what is neither a module
    nor an optimizer.
    """

    def __init__(self, *model_and_optimizers: Any) -> None:
        """Check what is to be watched."""
        super().__init__()
        for one in model_and_optimizers:
            if not isinstance(one, (nn.Module, torch.optim.Optimizer)):
                raise TypeError(
                    f"watch: give it modules and optimizers (torch.nn.Module, torch.optim.Optimizer), got {one!r}"
                )
        self._given = model_and_optimizers
        self._runner: RuleRunner | None = None
        self._process = 0

    def __enter__(self) -> watch:
        """Begin to watch, with an empty report."""
        if self._runner is not None:
            raise RuntimeError("watch: this one is already watching; make another for a loop inside the loop")
        self.findings, self.watched, self.history = [], "", []
        self.missing = [str(one) for one in _torch.missing("doctor")]
        runner = self._runner = RuleRunner()
        self._process = os.getpid()
        for one in self._given:
            if isinstance(one, nn.Module):
                runner.context.log.models.see(one)
            else:
                runner.context.log.optimizer(one)
        runner.listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching and write the report."""
        runner, self._runner = self._runner, None
        self._given = ()  # a report keeps no model alive
        if runner is None:
            return
        runner.listener.stop()
        if os.getpid() != self._process:  # a forked worker: its parent reports
            return
        self._conclude(runner, error)
        if error is not None:
            _strip_all(error)

    def _conclude(self, runner: RuleRunner, error: BaseException | None) -> None:
        log = runner.context.log
        try:
            runner.end(normal=error is None)
            if error is not None:
                KnownErrors(runner.context).explain(error)
            runner.context.look_for_causes()
        except Exception as failure:
            log.give_up(failure)
        self.findings = runner.findings()
        self.history = runner.history.read(runner.context.name)
        self.watched = _summary(runner)
        if log.failure:
            self.watched += f" The doctor itself failed and stopped looking ({log.failure})."


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


def _summary(runner: RuleRunner) -> str:
    state, context = runner.context.state, runner.context
    if not context.log.backwards:
        return "Nothing was trained in this block: no backward pass and no step."
    if len(context.state.optimizers) <= _MOST_NAMED:
        steps = [
            f"{number_of(state.step_calls.get(at, 0), 'update')} "
            + ("by your own lines" if at == MANUAL_UPDATE else f"of {context.full_name(at)}")
            for at in context.state.optimizers
        ]
    else:
        updates = number_of(sum(state.step_calls.values()), "update")
        steps = [f"{updates} of {number_of(len(context.state.optimizers), 'optimizer')}"]
    return f"Watched {number_of(context.log.backwards, 'backward pass', 'es')}" + (
        f", {', '.join(steps)}." if steps else ", no optimizer."
    )
