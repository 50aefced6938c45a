"""Checks of answers on random cases, with verdicts that name typical mistakes."""

from __future__ import annotations

import linecache
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from textwrap import shorten
from traceback import walk_tb
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from ..._checks import brief
from ..._frames import Owner, code_owner, raised_at
from ..._process import main_thread, preserving_rng, preserving_torch_state
from ...drawing import themed_svg, to_svg
from ..figures.curves import CourseFigure
from . import exercise_texts
from .texts import NOT_ATTEMPTED, NOT_YET, RIGHT, Exercise, Verdict

_MAX_MESSAGE_CHARS = 200
Case = tuple[tuple[Any, ...], str]
"""The arguments that an answer is called with, and a description of the case for the verdict, which may be ""."""
_KINDS = {bool: "True or False", Real: "A number", str: "A string"}


class TroubleError(Exception):
    """Raised if an answer cannot be run or compared; the message is a sentence without its full stop."""


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A check that compares an answer with the exercise's solution on random cases."""

    case: Callable[[random.Random], Case]
    """Makes a case with random numbers from its argument or from torch; the same seed must give a new, equal case."""
    observe: Callable[..., object] = lambda answer, *arguments: answer(*arguments) if callable(answer) else answer
    """Returns the value to compare: by default ``answer(*arguments)``, or ``answer`` itself if it is not callable."""
    draw: Callable[[Any], CourseFigure] | None = None
    """Draws the effect of an answer in the lesson's picture; None for an exercise without a picture."""
    mistakes: Mapping[str, object]
    """Typical wrong answers by name, with remarks in the ``.md`` file; if several match, the first is reported."""
    rounds: int = 10
    """Number of random cases in a check."""
    relative: float = 1e-4
    absolute: float = 1e-6
    """The tolerances: numbers may differ by at most ``absolute + relative * abs(expected)``."""

    def check(self, exercise: Exercise, answer: object) -> Verdict:
        """Check an answer on random cases and return the Verdict, even after an error (except KeyboardInterrupt)."""
        stub = stub_of(exercise.stub)
        if is_unchanged(answer, stub):
            verdict = Verdict(NOT_ATTEMPTED, "Fill in the stub above and run its cell again.")
        elif callable(answer) and not callable(stub):
            return Verdict(NOT_YET, f"The answer must be a value, not a function; you passed `{brief(answer)}`.")
        elif callable(stub) and not callable(answer):
            return no_function(exercise, answer)
        else:
            with main_thread.hold(), preserving_rng(), preserving_torch_state():
                verdict = _try(self, exercise, answer)
        return replace(verdict, picture=self._picture(answer))

    def _picture(self, answer: object) -> str | None:
        if self.draw is None:
            return None
        with main_thread.hold(), preserving_rng(), preserving_torch_state():
            try:
                return themed_svg(to_svg(self.draw(answer).placed))
            except KeyboardInterrupt:
                raise
            except BaseException:  # a learner's code may raise anything
                return None


def no_function(exercise: Exercise, answer: object) -> Verdict:
    """Return the verdict on an answer that should be a function but is not."""
    return Verdict(NOT_YET, f"The answer must be a function: pass `{exercise.name}` itself, not {brief(answer)}.")


def stub_of(text: str) -> Any:
    """Run the source of a stub or solution, and return the function or value that it defines last."""
    names: dict[str, Any] = {"torch": torch, "nn": nn, "math": math}
    exec(compile(text, "<stub>", "exec"), names)
    return [*names.values()][-1]


def variant(name: str, *changes: tuple[str, str]) -> Any:
    """Return an exercise's solution with parts of its source replaced; raise ValueError if the source lacks a part."""
    text = exercise_texts()[name].solution
    for part, replacement in changes:
        if part not in text:
            raise ValueError(f"variant: the solution of {name} must contain {part!r}, got {text!r}")
        text = text.replace(part, replacement)
    return stub_of(text)


def is_unchanged(answer: Any, stub: Any) -> bool:
    """Return whether an answer is None or ``...``, or still equals the stub; functions are compared by their code."""
    if answer is None or answer is ...:
        return True
    if isinstance(answer, FunctionType) and isinstance(stub, FunctionType):
        codes = answer.__code__, stub.__code__
        mine, theirs = ((c.co_code, repr(c.co_consts), c.co_names, c.co_varnames) for c in codes)
        return mine == theirs
    if isinstance(answer, type) and isinstance(stub, type):
        parts = {name: part for name, part in vars(stub).items() if isinstance(part, FunctionType)}
        return all(name in vars(answer) and is_unchanged(vars(answer)[name], part) for name, part in parts.items())
    return isinstance(stub, list) and isinstance(answer, list) and list(map(str, answer)) == stub


def _try(definition: Definition, exercise: Exercise, answer: object) -> Verdict:
    rng = random.Random()  # a new generator, because the learner may have seeded the global one
    seeds = [rng.randrange(2**31) for _ in range(definition.rounds)]
    observed: list[object] = []
    for seed in seeds:
        try:
            observed.append(_observe(definition, answer, seed))
        except TroubleError as trouble:
            return Verdict(NOT_YET, f"{trouble}{_in_case(definition, seed)}")
    solution = stub_of(exercise.solution)
    for seed, mine in zip(seeds, observed, strict=True):
        remark = _difference(definition, mine, _observe(definition, solution, seed))
        if remark:
            mistakes = definition.mistakes.items()
            name = next((name for name, wrong in mistakes if _is_mistake(definition, wrong, seeds, observed)), None)
            mistake_remark = f"{exercise.remarks[name]}\n" if name else ""
            return Verdict(NOT_YET, f"{mistake_remark}{remark}{_in_case(definition, seed)}", name)
    return Verdict(RIGHT, f"In {len(seeds)} random cases." if len(seeds) > 1 else "")


def _case(definition: Definition, seed: int) -> Case:
    """Return the case for a seed, made anew each time because an answer may change its arguments in place."""
    # torch.manual_seed(seed) is slow because it also seeds absent devices.
    torch.random.default_generator.manual_seed(seed)  # type: ignore[attr-defined]  # not in its __all__
    return definition.case(random.Random(seed))


def _in_case(definition: Definition, seed: int) -> str:
    _, text = _case(definition, seed)
    return f", for {text}." if text else "."


def _observe(definition: Definition, answer: object, seed: int) -> object:
    """Return the observed result of an answer in one case; raise TroubleError for any error but KeyboardInterrupt."""
    arguments, _ = _case(definition, seed)
    with preserving_torch_state():
        try:
            return definition.observe(answer, *arguments)
        except (TroubleError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise TroubleError(error_sentence(error)) from None


def error_sentence(error: BaseException) -> str:
    """Describe an answer's error, with the line of the cell if known, as a sentence without its full stop."""
    files = (frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__))
    cell = next((file for file in files if code_owner(file) is Owner.USER), "")
    raised = raised_at(error, cell.__eq__)
    code = linecache.getline(cell, raised[1]).strip() if raised is not None else ""
    line = f", in line {raised[1]} of the cell: `{code}`" if raised is not None and code else ""
    message = shorten(str(error), _MAX_MESSAGE_CHARS, placeholder="...") or "without a message"
    return f"It raises {type(error).__name__}: {message}{line}"


def _difference(definition: Definition, mine: object, right: object) -> str:
    try:
        if mismatch := _mismatch(mine, right):
            return mismatch
        same = alike(mine, right, definition.relative, definition.absolute)
        return "" if same else f"Your result is {brief(mine)}, but {brief(right)} is expected"
    except Exception:  # the methods of a learner's object may fail
        return f"Your result cannot be compared: {brief(mine)}"


def _mismatch(answer: Any, expected: Any) -> str:
    """Describe the first mismatch in type, shape, keys or length between ``answer`` and ``expected``, or return ""."""
    if isinstance(expected, Tensor) and expected.numel() == 1:
        expected = expected.item()
    wanted = _wanted(expected)
    if answer is None:
        return f"{wanted} is expected, but yours is None: a `return` may be missing"
    if isinstance(expected, Tensor) and isinstance(answer, Tensor) and answer.shape != expected.shape:
        return f"{wanted} is expected, but yours has the shape {tuple(answer.shape)}"
    mine, theirs = without_tensors(answer), without_tensors(expected)
    if _kind(mine) is not _kind(theirs):
        return f"{wanted} is expected, but yours is {brief(answer)}"
    if isinstance(theirs, dict) and mine.keys() != theirs.keys():
        return f"The keys {_keys(theirs)} are expected, but yours are {_keys(mine)}"
    if isinstance(theirs, list) and len(mine) != len(theirs):
        return f"{wanted} is expected, but yours has {len(mine)}"
    parts = [(answer[key], expected[key]) for key in theirs] if isinstance(theirs, dict) else []
    return next(filter(None, (_mismatch(*pair) for pair in parts)), "")


def _kind(value: Any) -> type:
    """Return the type that stands for ``value`` in comparisons: bool for True and False, Real for any other number."""
    return next((kind for kind in (*_KINDS, list, dict) if isinstance(value, kind)), type(value))


def _wanted(expected: Any) -> str:
    if isinstance(expected, Tensor):
        return f"A tensor of shape {tuple(expected.shape)}"
    if isinstance(expected, dict):
        return f"A dict with the keys {_keys(expected)}"
    if isinstance(expected, (list, tuple)):
        return f"A {type(expected).__name__} of {len(expected)}"
    return _KINDS[_kind(expected)]


def _keys(mapping: Mapping[Any, Any]) -> str:
    return ", ".join(map(repr, mapping)) or "none"


def without_tensors(value: Any) -> Any:
    """Convert all tensors and tuples inside a value to lists, but tensors of one element to numbers."""
    if isinstance(value, Tensor):
        return value.item() if value.numel() == 1 else value.tolist()
    if isinstance(value, (list, tuple)):
        return [without_tensors(part) for part in value]
    return {key: without_tensors(part) for key, part in value.items()} if isinstance(value, Mapping) else value


def alike(mine: Any, other: Any, relative: float, absolute: float) -> bool:
    """Return whether two values, or all parts of two containers, are equal within the tolerances; nan equals nan."""
    mine, other = without_tensors(mine), without_tensors(other)
    if isinstance(mine, list) and isinstance(other, list):
        pairs = zip(mine, other, strict=False)
        return len(mine) == len(other) and all(alike(*pair, relative, absolute) for pair in pairs)
    if isinstance(mine, dict) and isinstance(other, dict):
        return mine.keys() == other.keys() and all(alike(mine[key], other[key], relative, absolute) for key in mine)
    if _kind(mine) is Real and _kind(other) is Real:
        both_nan = math.isnan(mine) and math.isnan(other)
        return both_nan or mine == other or abs(mine - other) <= absolute + relative * abs(other)
    return type(mine) is type(other) and bool(mine == other)


def _is_mistake(definition: Definition, wrong: object, seeds: list[int], observed: list[object]) -> bool:
    try:
        return all(
            alike(mine, _observe(definition, wrong, seed), definition.relative, definition.absolute)
            for seed, mine in zip(seeds, observed, strict=True)
        )
    except Exception:  # the wrong answer fails in this case, or a learner's object cannot be compared
        return False
