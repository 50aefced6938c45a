"""What the ``.py`` file of an exercise says: its random cases, what is expected, and typical wrong answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .brief import brief

_BY_REFERENCE = object()


class Case:
    """One random case: what an answer is called with, how the verdict names it, and what is expected.

    ``text`` is by default the arguments themselves; "" says nothing. ``expect`` is a value, or a function without
    arguments that computes it from a case that no answer has touched; left out, it is ``reference(*arguments)``.
    """

    def __init__(self, *arguments: object, text: str | None = None, expect: object = _BY_REFERENCE) -> None:
        self.arguments = arguments
        self.text = ", ".join(map(brief, arguments)) if text is None else text
        self._expect = expect

    def expected(self, reference: Callable[..., object]) -> object:
        """Return what a right answer gives."""
        if self._expect is _BY_REFERENCE:
            return reference(*self.arguments)
        return self._expect() if callable(self._expect) else self._expect


def call(answer: object, *arguments: object) -> object:
    """Return what a function returns, or the answer itself where a value is asked for."""
    return answer(*arguments) if callable(answer) else answer


def _no_reference(*arguments: object) -> object:
    raise TypeError("an exercise needs a reference, or cases with expect=")


@dataclass(frozen=True, kw_only=True)
class Definition:
    """How answers to an exercise are tried."""

    case: Callable[[random.Random], Case]
    """Make a case from random numbers, those of the generator or torch's: the same ones make the same case, afresh."""
    reference: Callable[..., object] = _no_reference
    """``reference(*arguments)``: what a right answer gives; its type and shape say what an answer must look like."""
    observe: Callable[..., object] = call
    """``observe(answer, *arguments)``: what is compared with the expected."""
    mistakes: Mapping[str, object] = field(default_factory=dict)
    """Typical wrong answers by name; where several fit, the first one is named. Their remarks are in the ``.md``."""
    plot_values: Callable[..., object] = lambda value: value
    """What of a value goes into the picture: numbers in a row, or by label; None for no picture."""
    axes: tuple[str, str] = ("", "")
    """What the axes of the picture show, with units."""
    rounds: int = 10
    """How many random cases a check tries."""
    seconds: float = 5.0
    """How long the answer may work on one case."""
    relative: float = 1e-4
    """Two numbers are alike when they differ by no more than this part of the larger one ..."""
    absolute: float = 1e-6
    """... or by no more than this."""
