"""How answers to an exercise are tried (its cases, what is expected, typical mistakes), and the verdict on one."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..._checks import brief
from ...formatting import html_box, inline_html, svg_img

RIGHT, NOT_YET, NOT_ATTEMPTED = "right", "not yet", "not attempted"
_LOOK = {  # a sign beside each colour, for those who do not see it
    RIGHT: ("\u2713 Right", "#009E73"),
    NOT_YET: ("\u2717 Not yet", "#D55E00"),
    NOT_ATTEMPTED: ("\u25cb Not attempted yet", "#767676"),
}
_BY_REFERENCE = object()


class TroubleError(Exception):
    """Why an answer cannot be compared, in a sentence without its full stop."""


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
    relative: float = 1e-4
    """Two numbers are alike when they differ by no more than this part of the larger one ..."""
    absolute: float = 1e-6
    """... or by no more than this."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check; it counts as true when the answer is right."""

    state: str
    """``"right"``, ``"not yet"`` or ``"not attempted"``."""
    remark: str
    mistake: str | None = None
    """The name of the typical wrong answer that this is, None if it is none of those known."""
    draw: Callable[[], str | None] = field(default=lambda: None, repr=False, compare=False)
    """Makes the picture; most verdicts are never looked at twice, so it is made when it is shown."""

    @cached_property
    def picture(self) -> str | None:
        """Yours against expected, as a picture; None where there is nothing to draw."""
        return self.draw()

    def __bool__(self) -> bool:
        return self.state == RIGHT

    def __repr__(self) -> str:
        return f"{_LOOK[self.state][0]}. {self.remark}".rstrip()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        head, colour = _LOOK[self.state]
        picture = "" if self.picture is None else f"<br>{svg_img(self.picture, self.remark, 560)}"
        page = html_box(f"<b>{head}.</b> {inline_html(self.remark)}{picture}", colour)
        return {"text/plain": repr(self), "text/html": page}
