"""From an answer to a verdict: not attempted, a trouble, a typical mistake by name, wrong, or right."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from .alike import alike
from .base import Exercise, short
from .fitting import UnfitError, fit
from .guard import TroubleError, guarded
from .stubs import stub_of, untouched
from .verdict import NOT_ATTEMPTED, NOT_YET, RIGHT, Verdict


def check(exercise: Exercise, answer: Any) -> Verdict:
    """Try an answer on ``exercise.rounds`` random cases; whatever happens is a Verdict."""
    stub = stub_of(exercise.stub)
    if untouched(answer, stub):
        return Verdict(NOT_ATTEMPTED, "Fill in the stub above and run its cell again.")
    if callable(stub) and not callable(answer):
        name = getattr(stub, "__name__", "your function")
        return Verdict(NOT_YET, f"A function is wanted: hand over `{name}` itself, not {short(answer)}.")
    if callable(answer) and not callable(stub):
        return Verdict(NOT_YET, f"A value is wanted, not a function: you hand over `{short(answer)}`.")
    # The random numbers and the grad mode of the learner's own cells stay as they are.
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        return _tried(exercise, answer)


def _tried(exercise: Exercise, answer: Any) -> Verdict:
    # The first optimizer of a process imports for seconds; cut off in the middle, it would stay half imported.
    torch.optim.SGD([torch.zeros(1)], lr=0.1)
    seeds = [random.randrange(2**31) for _ in range(exercise.rounds)]
    said: list[Any] = []
    for seed in seeds:
        arguments = _case(exercise, seed)
        try:
            with guarded(answer, exercise.seconds):
                said.append(exercise.observe(answer, *arguments))
        except TroubleError as trouble:
            return Verdict(NOT_YET, f"{trouble}{_where(exercise, seed)}")
    expected = [exercise.right(*_case(exercise, seed)) for seed in seeds]
    for seed, mine, right in zip(seeds, said, expected, strict=True):
        try:
            fitted = fit(mine, right)
        except UnfitError as unfit:
            remark, fitted = f"{unfit}{_where(exercise, seed)}", None
        else:
            if _alike(exercise, fitted, right):
                continue
            remark = f"You get {short(fitted)}, expected is {short(right)}{_where(exercise, seed)}"
        for mistake in exercise.mistakes:
            if _makes(exercise, mistake.answer, seeds, said):
                return Verdict(NOT_YET, f"{mistake.remark}\n{remark}", mistake.name, _picture(exercise, fitted, right))
        return Verdict(NOT_YET, remark, None, _picture(exercise, fitted, right))
    many = f"in {len(seeds)} random cases" if len(seeds) > 1 else ""
    return Verdict(RIGHT, f"{many.capitalize()}." if many else "", None, _picture(exercise, said[-1], expected[-1]))


def _case(exercise: Exercise, seed: int) -> tuple[Any, ...]:
    """Make a case afresh: an answer may have changed its arguments."""
    torch.manual_seed(seed)
    return exercise.case(random.Random(seed))


def _alike(exercise: Exercise, one: Any, other: Any) -> bool:
    return alike(one, other, exercise.relative, exercise.absolute)


def _makes(exercise: Exercise, wrong: Any, seeds: list[int], said: list[Any]) -> bool:
    """Whether a typical wrong answer says the same in every case."""
    for seed, mine in zip(seeds, said, strict=True):
        arguments = _case(exercise, seed)
        try:
            with guarded(wrong, exercise.seconds):
                theirs = exercise.observe(wrong, *arguments)
        except TroubleError:
            return False
        if not _alike(exercise, mine, theirs):
            return False
    return True


def _where(exercise: Exercise, seed: int) -> str:
    told = exercise.told(*_case(exercise, seed))
    return f", for {told}." if told else "."


def _picture(exercise: Exercise, mine: Any, right: Any) -> Callable[[], bytes | None]:
    """Return what draws yours against expected, where both can be drawn."""

    def draw() -> bytes | None:
        from ..views.answer import answer_figure

        try:
            return None if mine is None else answer_figure(exercise.drawn(mine), exercise.drawn(right), *exercise.axes)
        except (TypeError, ValueError, RuntimeError):  # a learner's value may be of any kind; then there is no picture
            return None

    return draw
