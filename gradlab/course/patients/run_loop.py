"""A training loop that a learner may edit, and its run under the doctor and the observer: whatever it does is words."""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import linecache
import random
import textwrap
import types
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ..._frames import raised_at
from ..._process import learner_threads, main_thread, parse_python, preserving, preserving_rng, preserving_torch_state
from ...doctor import Finding, watch
from ..exercises.checking import error_text
from .loop_history import LoopHistory
from .observer import LoopObserver

_MOST_LETTERS = 40_000
_MOST_PRINTED = 4_000  # letters that are kept of what a loop prints
_numbers = itertools.count(1)


@dataclass(frozen=True)
class LearnerLoop:
    """The text of a loop, and the names that it is given; of a function also what it is called with."""

    text: str
    names: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What the text may use: the globals and the closure of a function."""
    function: str = ""
    """The function of the text that is the loop; "" where the text itself is."""
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)


def loop_of(given: object, names: Mapping[str, Any]) -> LearnerLoop:
    """Return the loop of a text or a function; ``names`` are the text's names or the function's arguments.

    Raises TypeError or ValueError that says what is missing.
    """
    if isinstance(given, str):
        return LearnerLoop(given, {"torch": torch, "nn": torch.nn, **names})
    if not isinstance(given, types.FunctionType):
        raise TypeError(f"Patient: give it the name of a patient, a loop as text or a function, got {given!r}")
    name = given.__name__
    if name == "<lambda>":
        raise TypeError("Patient: a lambda has no text of its own to show; write the loop as a function with def")
    try:
        text = textwrap.dedent(inspect.getsource(given))
    except (OSError, TypeError):
        raise ValueError(f"Patient: the source of {name} cannot be found; hand over its text instead") from None
    signature = inspect.signature(given)
    try:
        signature.bind(**names)
    except TypeError as error:
        raise TypeError(
            f"Patient: {name}{signature} {error}; give its arguments by name: Patient({name}, ...)"
        ) from None
    cells = zip(given.__code__.co_freevars, given.__closure__ or (), strict=True)
    closure = {key: cell.cell_contents for key, cell in cells if cell != types.CellType()}  # one may be empty yet
    return LearnerLoop(text, {**given.__globals__, **closure}, name, dict(names))


class _TooManyUpdates(BaseException):
    """Ends a loop at its limit of updates; no ``except Exception`` of its own catches it."""


@dataclass(frozen=True)
class LoopOutcome:
    """What came of a run."""

    text: str
    history: LoopHistory
    findings: list[Finding]
    """What the doctor found, the gravest first."""
    watched: str = ""
    """The doctor's summary: ``"Watched 24 backward passes, 24 updates of SGD."``"""
    trouble: str = ""
    """Why the loop did not come to its end, in a sentence; "" if it did."""
    line: int = 0
    """The line of the trouble, 0 where there is none."""
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


def run_loop(loop: LearnerLoop, text: str | None = None, *, max_updates: int = 1_000) -> LoopOutcome:
    """Run a loop, or another text in its place; it raises nothing but KeyboardInterrupt.

    Random numbers, torch's settings, and the models and optimizers that the loop was given are afterwards as before.
    """
    text = loop.text if text is None else text
    filename = f"<loop {next(_numbers)}>"
    code, trouble, line = _compiled(text, filename)
    if code is not None and (threads := learner_threads()):
        code, trouble = (
            None,
            f"Your thread {threads[0]!r} runs, and the loop would seed its random numbers: join it first.",
        )
    if code is None:
        return LoopOutcome(text, LoopHistory(), [], trouble=trouble, line=line)
    stopped = False

    def before_update(number: int) -> None:
        nonlocal stopped
        if number > max_updates:
            stopped = True
            raise _TooManyUpdates

    names = {**loop.names, "__name__": "__main__", "input": _no_input}
    used = [loop.names[name] for name in _names_in(code) if name in loop.names] + list(loop.arguments.values())
    observer = LoopObserver(filename, before_update)
    report = watch(*(one for one in used if isinstance(one, (torch.nn.Module, torch.optim.Optimizer))))
    report.attach(observer)
    printed = _FewLetters()
    hold = main_thread.hold()
    with hold, preserving_rng(), preserving_torch_state(), warnings.catch_warnings(), preserving(used):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        random.seed(0)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), report:
                exec(code, names)
                if loop.function:
                    names[loop.function](**loop.arguments)
        except KeyboardInterrupt:
            raise
        except SystemExit:
            trouble = "It calls exit: a loop ends by itself."
        except BaseException as error:
            trouble, line = _told(error, filename)
        if stopped:  # the loop may have caught what ended it
            trouble, line = f"It was stopped after {max_updates:,} updates.", 0
        return LoopOutcome(
            text=text,
            history=observer.history,
            findings=sorted(report.findings, key=lambda finding: finding.file not in (filename, "")),
            watched=report.watched,
            trouble=trouble,
            line=line,
            names={name: value for name, value in names.items() if value is not loop.names.get(name)},
            printed=printed.getvalue().rstrip(),
        )


def _compiled(text: str, filename: str) -> tuple[types.CodeType | None, str, int]:
    """Return the code of a text, or None, why it cannot be run, and the line (0 where there is none)."""
    if len(text) > _MOST_LETTERS:
        return None, f"The text has {len(text):,} letters; {_MOST_LETTERS:,} are allowed.", 0
    try:
        code: types.CodeType = compile(parse_python(text, filename), filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = min(error.lineno or 0, len(text.splitlines()))
        return None, f"Line {line} is not valid Python: {error.msg}.", line
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return None, f"This is not valid Python: {error or type(error).__name__}.", 0
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    return code, "", 0


def _told(error: BaseException, filename: str) -> tuple[str, int]:
    """Say what an error says, in a sentence, with the innermost line of the text that led to it."""
    place = raised_at(error, filename.__eq__)
    line = place[1] if place is not None else 0
    said = error_text(error) or "no message"
    said = said.partition(" (")[0] if len(said) > 160 else said
    where = f" in line {line}" if line else ""
    return f"It stops{where} with {type(error).__name__}: {said}".rstrip(".") + ".", line


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
