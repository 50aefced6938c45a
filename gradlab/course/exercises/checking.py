"""From an answer to a verdict: not attempted, a trouble, a typical mistake by name, wrong, or right."""

from __future__ import annotations

import linecache
import math
import random
from collections.abc import Callable, Mapping
from traceback import walk_tb
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import nn

from ..._checks import brief
from ..._frames import Owner, code_owner, raised_at
from ..._process import main_thread, preserving_rng, preserving_torch_state
from .comparing import MismatchError, alike, coerce_like
from .definition import NOT_ATTEMPTED, NOT_YET, RIGHT, Case, Definition, TroubleError, Verdict

_MOST_LETTERS = 200  # of an exception's message


def check(definition: Definition, stub_text: str, remarks: Mapping[str, str], answer: object) -> Verdict:
    """Try an answer on ``definition.rounds`` random cases; whatever happens but an interrupt is a Verdict.

    ``remarks`` say what fits a typical mistake, by its name.
    """
    stub = stub_of(stub_text)
    if _is_unchanged(answer, stub):
        return Verdict(NOT_ATTEMPTED, "Fill in the stub above and run its cell again.")
    if callable(stub) and not callable(answer):
        name = getattr(stub, "__name__", "your function")
        return Verdict(NOT_YET, f"A function is wanted: hand over `{name}` itself, not {brief(answer)}.")
    if callable(answer) and not callable(stub):
        return Verdict(NOT_YET, f"A value is wanted, not a function: you hand over `{brief(answer)}`.")
    with main_thread.hold(), preserving_rng(), preserving_torch_state():
        return _tried(definition, remarks, answer)


def stub_of(text: str) -> Any:
    """Return what a stub defines last: a function or a value."""
    names: dict[str, Any] = {"torch": torch, "nn": nn, "math": math}
    given = {*names, "__builtins__"}
    exec(compile(text, "<stub>", "exec"), names)
    return [value for name, value in names.items() if name not in given][-1]


def _is_unchanged(answer: Any, stub: Any) -> bool:
    """Whether an answer is still the stub, or nothing at all."""
    if answer is None or answer is ...:
        return True
    if isinstance(answer, FunctionType) and isinstance(stub, FunctionType):
        return _parts(answer.__code__) == _parts(stub.__code__)
    try:
        return type(answer) is type(stub) and not callable(stub) and bool(answer == stub)
    except Exception:  # there is something in it that cannot be compared, so the learner has put it there
        return False


def _parts(code: CodeType) -> tuple[Any, ...]:
    """Return what makes a function do what it does: not its file, nor its place in it."""
    constants = tuple(_parts(part) if isinstance(part, CodeType) else repr(part) for part in code.co_consts)
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars


def _tried(definition: Definition, remarks: Mapping[str, str], answer: object) -> Verdict:
    rng = random.Random()  # not the learner's own, which may be seeded
    seeds = [rng.randrange(2**31) for _ in range(definition.rounds)]
    observed: list[object] = []
    for seed in seeds:
        try:
            observed.append(_observed(definition, answer, seed))
        except TroubleError as trouble:
            return Verdict(NOT_YET, f"{trouble}{_where(definition, seed)}")
    expected = [_case(definition, seed).expected(definition.reference) for seed in seeds]
    for seed, mine, right in zip(seeds, observed, expected, strict=True):
        coerced, remark = _compared(definition, mine, right)
        if not remark:
            continue
        remark += _where(definition, seed)
        picture = _picture(definition, coerced, right)
        for name, wrong in definition.mistakes.items():
            if _makes(definition, wrong, seeds, observed):
                return Verdict(NOT_YET, f"{remarks[name]}\n{remark}", name, picture)
        return Verdict(NOT_YET, remark, None, picture)
    many = f"In {len(seeds)} random cases" if len(seeds) > 1 else ""
    return Verdict(RIGHT, f"{many}." if many else "", None, _picture(definition, observed[-1], expected[-1]))


def _case(definition: Definition, seed: int) -> Case:
    """Make a case afresh: an answer may have changed its arguments."""
    torch.manual_seed(seed)
    return definition.case(random.Random(seed))


def _observed(definition: Definition, answer: object, seed: int) -> object:
    """Return what is seen of an answer in one case; what it has switched is switched back.

    Raises TroubleError for whatever it raises, but KeyboardInterrupt as it is: an interrupt ends the cell.
    """
    arguments = _case(definition, seed).arguments
    with preserving_torch_state():
        try:
            return definition.observe(answer, *arguments)
        except (TroubleError, KeyboardInterrupt):
            raise
        except BaseException as error:
            message = error_text(error) or "without a message"
            raise TroubleError(f"It raises {type(error).__name__}: {message}{_line(error)}") from None


def error_text(error: BaseException) -> str:
    """Return the message of an exception in one line, shortened; "" if it has none."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # an exception of the learner's own may fail to be written
        text = ""
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."


def _line(error: BaseException) -> str:
    """Name the line of the answer's cell that raised an error or made the call that did; "" outside any cell."""
    files = (frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__))
    cell = next((file for file in files if code_owner(file) is Owner.USER), "")
    raised = raised_at(error, cell.__eq__)
    text = linecache.getline(cell, raised[1]).strip() if raised is not None else ""
    return f", in line {raised[1]} of the cell: `{text}`" if raised is not None and text else ""


def _compared(definition: Definition, mine: object, right: object) -> tuple[object, str]:
    """Return what was observed in the form of what is expected, or None, and what is wrong with it, in words."""
    try:
        coerced = coerce_like(mine, right)
    except MismatchError as mismatch:
        return None, str(mismatch)
    except Exception:  # a learner's object may refuse to be looked at, in any way
        return None, f"What you have cannot be compared: {brief(mine)}"
    if _alike(definition, coerced, right):
        return coerced, ""
    return coerced, f"You get {brief(coerced)}, expected is {brief(right)}"


def _alike(definition: Definition, one: object, other: object) -> bool:
    try:
        return alike(one, other, definition.relative, definition.absolute)
    except Exception:  # numbers without an end, tensors of a kind of their own
        return False


def _makes(definition: Definition, wrong: object, seeds: list[int], observed: list[object]) -> bool:
    """Whether a typical wrong answer gives the same in every case."""
    for seed, mine in zip(seeds, observed, strict=True):
        try:
            theirs = _observed(definition, wrong, seed)
        except TroubleError:
            return False
        if not _alike(definition, mine, theirs):
            return False
    return True


def _where(definition: Definition, seed: int) -> str:
    text = _case(definition, seed).text
    return f", for {text}." if text else "."


def _picture(definition: Definition, mine: object, right: object) -> Callable[[], str | None]:
    """Return what draws yours against expected, where both can be drawn."""

    def draw() -> str | None:
        from ..figures.answer import answer_figure

        try:
            values = None if mine is None else (definition.plot_values(mine), definition.plot_values(right))
            return values and answer_figure(*values, *definition.axes)
        except Exception:  # a learner's value may be of any kind; then there is no picture
            return None

    return draw
