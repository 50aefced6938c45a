"""Runs a learner's loop under the doctor and the observer, so that whatever it does ends in words."""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import time
import traceback
import types
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ..._process import lock, preserving_rng, preserving_torch_state
from ...doctor import Finding, watch
from ..exercises.guard import TroubleError, guarded
from .as_found import left_as_found
from .learner_loop import LearnerLoop, LoopTextError, compile_loop, tick_names
from .loop_record import LoopRecord
from .observer import LoopObserver

_MOST_PRINTED = 4_000  # letters that are kept of what a loop prints
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Limits:
    """How long a loop may run."""

    updates: int = 1_000
    seconds: float = 10.0


@dataclass(frozen=True)
class LoopOutcome:
    """What came of a run."""

    text: str
    record: LoopRecord
    findings: list[Finding]
    """What the doctor found, the gravest first."""
    watched: str = ""
    """The doctor's summary: ``"Watched 24 backward passes, 24 updates of SGD."``"""
    trouble: str = ""
    """Why the loop did not come to its end, in a sentence; "" if it did."""
    line: int = 0
    """The line of the trouble, 0 where there is none."""
    stopped: bool = False
    """Whether a limit has ended it."""
    names: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The names that the loop has made, and what it was given and has replaced: the rest would only hold memory."""
    printed: str = ""

    @property
    def wrong(self) -> list[Finding]:
        """The findings that are more than hints."""
        return [finding for finding in self.findings if finding.severity != "hint"]

    @property
    def clean(self) -> bool:
        """Whether it ran to its end and nothing was found."""
        return not (self.trouble or self.wrong)


class _LimitReached(BaseException):
    """Ends a loop; no ``except Exception`` in it catches this."""


class _Clock:
    """Ends a loop that makes too many updates or takes too long."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.words = ""
        self._end = time.perf_counter() + limits.seconds

    def tick(self) -> None:
        if self.words or time.perf_counter() > self._end:
            self._stop(f"It was stopped after {self.limits.seconds:g} seconds: is there a loop without an end?")

    def before_update(self, number: int) -> None:
        if number > self.limits.updates:
            self._stop(f"It was stopped after {self.limits.updates:,} updates.")
        self.tick()

    def _stop(self, words: str) -> None:
        self.words = self.words or words
        raise _LimitReached


def run_loop(loop: LearnerLoop, limits: Limits, text: str | None = None) -> LoopOutcome:
    """Run a loop, or another text in its place; nothing that it does is raised but KeyboardInterrupt.

    Random numbers, torch's settings, and the models and optimizers that the loop was given are afterwards as before.
    """
    text = loop.text if text is None else text
    filename = f"<loop {next(_numbers)}>"
    try:
        code = compile_loop(text, filename)
    except LoopTextError as error:
        return LoopOutcome(text, LoopRecord(), [], trouble=str(error), line=error.line)
    clock = _Clock(limits)
    names = {**loop.names, **tick_names(clock.tick), "__name__": "__main__", "input": _no_input}
    used = [loop.names[name] for name in _names_in(code) if name in loop.names] + list(loop.arguments.values())
    observer = LoopObserver(filename, used, clock.before_update)
    report = watch(*(one for one in used if isinstance(one, (torch.nn.Module, torch.optim.Optimizer))))
    printed = _FewLetters()
    after: dict[str, Any] = {}

    def work() -> tuple[str, int]:
        try:
            with observer, contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), report:
                exec(code, names)
                if loop.function:
                    names[loop.function](**loop.arguments)
        except _LimitReached:
            return clock.words, 0
        except SystemExit:
            return "It calls exit: a loop ends by itself.", 0
        except Exception as error:
            line = _line(error, filename)
            return _words(error, line), line
        # A loop may have caught what ended it.
        return clock.words, 0

    with (
        lock,
        preserving_rng(cuda=torch.cuda.is_initialized(), python=True),
        preserving_torch_state(),
        warnings.catch_warnings(),
        left_as_found(used),
    ):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        random.seed(0)
        torch.optim.SGD([torch.zeros(1)], lr=0.1)  # the first one of a process imports for seconds
        try:
            trouble, line = guarded(work, types.FunctionType(code, {}), 2 * limits.seconds)  # type: ignore[misc]
        except TroubleError as error:  # the guard's own limit, for a call that does not tick
            trouble, line = f"{error}.", 0
        after.update((name, value) for name, value in names.items() if value is not loop.names.get(name))
        findings = [finding for finding in report.findings if finding.file == filename or not finding.file]
        findings += [finding for finding in report.findings if finding not in findings]
        return LoopOutcome(
            text=text,
            record=observer.record,
            findings=findings,
            watched=report.watched,
            trouble=trouble,
            line=line,
            stopped=bool(clock.words),
            names=after,
            printed=printed.getvalue().rstrip(),
        )


class _FewLetters(io.StringIO):
    """Keeps the first letters that are written, and forgets the rest."""

    def write(self, text: str) -> int:
        room = _MOST_PRINTED - self.tell()
        super().write(text[: max(room, 0)])
        return len(text)


def _no_input(*_: object) -> str:
    raise RuntimeError("a loop here cannot ask for input")


def _names_in(code: types.CodeType) -> set[str]:
    """Return all names that a text uses, also those within its functions."""
    inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return set(code.co_names).union(*map(_names_in, inner))


def _line(error: BaseException, filename: str) -> int:
    """Return the innermost line of the text that led to an error."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
    return frames[-1].lineno or 0 if frames else 0


def _words(error: BaseException, line: int) -> str:
    """Say what an error says in a sentence."""
    try:
        said = " ".join(str(error).split())
    except Exception:  # a learner's own exception may fail to say anything
        said = ""
    said = said.partition(" (")[0] if len(said) > 160 else said
    said = said if len(said) <= 200 else f"{said[:197]}..."
    where = f" in line {line}" if line else ""
    return f"It stops{where} with {type(error).__name__}: {said or 'no message'}".rstrip(".") + "."
