"""What every exercise has, and how it is shown."""

from __future__ import annotations

import html
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..formatting import prose
from .verdict import Verdict, card


@dataclass(frozen=True)
class Mistake:
    """A typical wrong answer: its name, the remark that fits, and an answer that makes it."""

    name: str
    remark: str
    answer: Any
    """A function like the one that is asked for, or a value where a value is asked for."""


class Exercise:
    """Something to write, and a check for it. A subclass says what; an instance is what a notebook shows."""

    name: ClassVar[str]
    notebook: ClassVar[str]
    """Where it stands: ``"03_forgetting_zero_grad"``."""
    title: ClassVar[str]
    level: ClassVar[str]
    """``"easy"``, ``"medium"`` or ``"harder"``."""
    minutes: ClassVar[int]
    spec: ClassVar[str]
    """One sentence that says what to write; code between backticks."""
    stub: ClassVar[str]
    """What stands in the notebook to begin with. The last name that it defines is the answer."""
    hints: ClassVar[tuple[str, ...]]
    """From a nudge to nearly the answer."""
    mistakes: ClassVar[tuple[Mistake, ...]]
    rounds: ClassVar[int] = 10
    """How many random cases a check tries."""
    seconds: ClassVar[float] = 5.0
    """How long the answer may take for one case."""
    relative: ClassVar[float] = 1e-4
    """Two numbers are alike when they differ by no more than this part of the larger one ..."""
    absolute: ClassVar[float] = 1e-6
    """... or by no more than this."""
    axes: ClassVar[tuple[str, str]] = ("", "")
    """What the axes of the picture show, with units."""

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return the arguments of one case: the same state of ``dice``, the same case, made afresh."""
        return ()

    def right(self, *arguments: Any) -> Any:
        """Return what is expected for these arguments; its type and shape say what an answer must look like."""
        raise NotImplementedError

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Return what is to be compared with ``right``: by default what the function returns, or the value itself."""
        return answer(*arguments) if callable(answer) else answer

    def told(self, *arguments: Any) -> str:
        """Return a case in words, for the verdict; empty where there is nothing to say."""
        return ", ".join(map(short, arguments))

    def drawn(self, value: Any) -> Any:
        """Return what of a value goes into the picture: numbers in a row, or by label; None for no picture."""
        return value

    def check(self, answer: Any) -> Verdict:
        """Try an answer on random cases and return the Verdict; a wrong one is a verdict, never an exception."""
        from .checking import check

        return check(self, answer)

    def __repr__(self) -> str:
        left = f"Hints: {len(self.hints)}, in .hints" if self.hints else ""
        return f"{self.title} ({self.level}, {self.minutes} minutes)\n{self.spec}\n{left}".rstrip()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        ladder = ""
        for number, hint in reversed(list(enumerate(self.hints, 1))):
            more = f"<summary>Hint {number} of {len(self.hints)}</summary><div>{prose(hint)}</div>"
            ladder = f'<details style="margin:4px 0 0 12px">{more}{ladder}</details>'
        head = f"<b>{html.escape(self.title)}</b> ({self.level}, {self.minutes} minutes)<br>"
        return {"text/plain": repr(self), "text/html": card(f"{head}{prose(self.spec)}{ladder}", "#0072B2")}


def short(value: Any) -> str:
    """Write a value in a few words for a case or a remark."""
    try:
        return _short(value)
    except Exception:  # a learner's object may refuse to be written, in any way; a list may contain itself
        return f"something of type {type(value).__name__}"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    shape = getattr(value, "shape", None)
    if shape is not None and (len(shape) > 1 or (len(shape) == 1 and shape[0] > 6)):
        return f"a tensor of shape {tuple(shape)}"
    if shape is not None:
        return _short(value.tolist()) if len(shape) else _short(value.item())
    if isinstance(value, (list, tuple)) and len(value) <= 8:
        return "[" + ", ".join(map(_short, value)) + "]"
    if isinstance(value, dict) and len(value) <= 8:
        return "{" + ", ".join(f"{key!r}: {_short(part)}" for key, part in value.items()) + "}"
    if isinstance(value, (list, tuple, str, bytes)):
        value = value[:100]  # the rest is cut off in any case; it may be millions
    text = getattr(value, "__name__", None) if isinstance(value, Callable) else None  # type: ignore[arg-type]
    text = text or repr(value)
    return text if len(text) <= 90 else f"{text[:87]}..."
