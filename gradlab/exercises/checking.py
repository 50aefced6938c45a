"""From an answer to a verdict: not attempted, a trouble, a typical mistake by name, wrong, or right."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .alike import alike
from .base import Exercise, short
from .fitting import UnfitError, fit
from .guard import TroubleError, guarded
from .kernel import same_dice, same_switches
from .stubs import stub_of, untouched
from .verdict import NOT_ATTEMPTED, NOT_YET, RIGHT, Verdict

_TURN = threading.RLock()  # the random numbers that the cases are made from are those of the whole process


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
    with _TURN, same_dice(), same_switches():
        return _tried(exercise, answer)


def _tried(exercise: Exercise, answer: Any) -> Verdict:
    # The first optimizer of a process imports for seconds; that is not the answer's time.
    torch.optim.SGD([torch.zeros(1)], lr=0.1)
    dice = random.Random()  # not the learner's own, which may be seeded
    seeds = [dice.randrange(2**31) for _ in range(exercise.rounds)]
    said: list[Any] = []
    for seed in seeds:
        try:
            said.append(_observed(exercise, answer, seed))
        except TroubleError as trouble:
            return Verdict(NOT_YET, f"{trouble}{_where(exercise, seed)}")
    expected = [exercise.right(*_case(exercise, seed)) for seed in seeds]
    for seed, mine, right in zip(seeds, said, expected, strict=True):
        fitted, remark = _compared(exercise, mine, right)
        if not remark:
            continue
        remark += _where(exercise, seed)
        for mistake in exercise.mistakes:
            if _makes(exercise, mistake.answer, seeds, said):
                return Verdict(NOT_YET, f"{mistake.remark}\n{remark}", mistake.name, _picture(exercise, fitted, right))
        return Verdict(NOT_YET, remark, None, _picture(exercise, fitted, right))
    many = f"in {len(seeds)} random cases" if len(seeds) > 1 else ""
    return Verdict(RIGHT, f"{many.capitalize()}." if many else "", None, _picture(exercise, said[-1], expected[-1]))


def _observed(exercise: Exercise, answer: Any, seed: int) -> Any:
    """Return what is seen of an answer in one case; what it has switched is switched back."""
    arguments = _case(exercise, seed)
    with same_switches():
        return guarded(partial(exercise.observe, answer, *arguments), answer, exercise.seconds)


def _compared(exercise: Exercise, mine: Any, right: Any) -> tuple[Any, str]:
    """Return what was said in the form of what is expected, or None, and what is wrong with it, in words."""
    try:
        fitted = fit(mine, right)
    except UnfitError as unfit:
        return None, str(unfit)
    except Exception:  # a learner's object may refuse to be looked at, in any way
        return None, f"What you have cannot be compared: {short(mine)}"
    if _alike(exercise, fitted, right):
        return fitted, ""
    return fitted, f"You get {short(fitted)}, expected is {short(right)}"


def _case(exercise: Exercise, seed: int) -> tuple[Any, ...]:
    """Make a case afresh: an answer may have changed its arguments."""
    torch.manual_seed(seed)
    return exercise.case(random.Random(seed))


def _alike(exercise: Exercise, one: Any, other: Any) -> bool:
    try:
        return alike(one, other, exercise.relative, exercise.absolute)
    except Exception:  # numbers without an end, tensors of a kind of their own
        return False


def _makes(exercise: Exercise, wrong: Any, seeds: list[int], said: list[Any]) -> bool:
    """Whether a typical wrong answer says the same in every case."""
    for seed, mine in zip(seeds, said, strict=True):
        try:
            theirs = _observed(exercise, wrong, seed)
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
        from ..course.figures.answer import answer_figure

        try:
            return None if mine is None else answer_figure(exercise.drawn(mine), exercise.drawn(right), *exercise.axes)
        except Exception:  # a learner's value may be of any kind; then there is no picture
            return None

    return draw
