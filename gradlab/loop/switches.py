"""Kinds of switches: what values one may have, and how a value is written. From them follow the check in Recipe, the
control in a Lab, a ForecastLab or an instrument, and the option on the command line.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from numbers import Integral
from typing import Any, ClassVar, cast

from .._checks import LARGEST_FLOAT, SMALLEST_FLOAT, did_you_mean, number, on_off, whole_number


@dataclass(frozen=True, kw_only=True)
class Switch(ABC):
    """What is declared of one switch besides its name and its value; those of a Recipe's are those of its field."""

    kind: ClassVar[str]  # what the browser shows: ``front/controls.js`` has an element for each
    label: str = ""  # how learners read its name, where that is not the field's: "AMP" for ``amp``
    option: str = ""  # its option on the command line, "" for a switch that no command needs
    metavar: str | None = None  # what the command line's help says of the option's value ...
    help: str | None = None  # ... and of the option
    matters: Callable[[Any], bool] | None = None
    """Whether it has an effect in a recipe, None for always; its control is greyed out where it has none."""

    @abstractmethod
    def check(self, name: str, value: object) -> Any:
        """Return the value as it is kept; ValueError says the name, the value and what is allowed."""

    def text(self, value: Any) -> str:
        """Write a value."""
        return str(value)

    def read(self, name: str, typed: object) -> Any:
        """Return the value that was chosen or typed in a control; ValueError says what is allowed."""
        return self.check(name, typed)


@dataclass(frozen=True, kw_only=True)
class OnOff(Switch):
    """True or False."""

    kind = "tick"

    def check(self, name: str, value: object) -> bool:
        """Return a bool."""
        return on_off(name, value, kind=ValueError)

    def text(self, value: Any) -> str:
        """Write "on" or "off"."""
        return "on" if value else "off"


@dataclass(frozen=True, kw_only=True)
class Choice(Switch):
    """One of some texts or numbers."""

    kind = "choice"
    options: tuple[Any, ...]
    words: tuple[str, ...] = ()
    """How the options are written, where that is not as they are."""

    def check(self, name: str, value: object) -> Any:
        """Return one of the options; 1 is 1.0, as in JSON, but not True."""
        if isinstance(value, (str, int, float)) and not isinstance(value, bool) and value in self.options:
            return self.options[self.options.index(value)]
        near = did_you_mean(value, [known for known in self.options if isinstance(known, str)])
        raise ValueError(f"{name} must be one of {', '.join(map(repr, self.options))}, got {value!r}{near}")

    def text(self, value: Any) -> str:
        """Write an option."""
        return self.words[self.options.index(value)] if self.words else str(value)


@dataclass(frozen=True, kw_only=True)
class Whole(Switch):
    """A whole number from ``low`` to ``high``."""

    kind = "whole"
    low: int
    high: int

    def check(self, name: str, value: object) -> int:
        """Return an int within the range."""
        allowed = f"{self.low} to {self.high}"
        if isinstance(value, bool) or not isinstance(value, Integral):  # of a whole number, only its size is wrong
            allowed = f"a whole number, {allowed}"
        return whole_number(name, value, self.low, self.high, allowed=allowed, kind=ValueError)

    def read(self, name: str, typed: object) -> int:
        """Take a typed whole number: ``"4"``, but not ``"2.5"``."""
        if isinstance(typed, str) and re.fullmatch(r"[+-]?\d{1,18}", typed.strip(), re.ASCII):
            count = int(typed)
            return self.check(name, count if self.low <= count <= self.high else typed)  # refused as it was typed
        return self.check(name, typed)


@dataclass(frozen=True, kw_only=True)
class Positive(Switch):
    """A finite number above 0; with ``offered``, numbers that a control offers, it may be None as well, "off"."""

    kind = "number"
    offered: tuple[float, ...] = ()

    def check(self, name: str, value: object) -> float | None:
        """Return a float, so that equal recipes read alike."""
        if value is None and self.offered:
            return None
        allowed = f"{'None or ' if self.offered else ''}a finite number above 0"
        return number(name, value, SMALLEST_FLOAT, LARGEST_FLOAT, allowed=allowed, kind=ValueError)

    def read(self, name: str, typed: object) -> float | None:
        """Take a typed number: ``"0.05"``, ``"1e-3"``; where it may be None, "off" too."""
        if isinstance(typed, str):
            if typed.strip() == "off":
                return self.check(name, None)
            if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", typed.strip(), re.ASCII):
                amount = float(typed)
                return self.check(name, amount if 0 < amount < math.inf else typed)  # refused as it was typed
        return self.check(name, typed)

    def text(self, value: Any) -> str:
        """Write the number in at most six figures, None as "off"."""
        return "off" if value is None else f"{value:g}"


def declare(default: Any, switch: Switch) -> Any:
    """Return a dataclass field with this default that carries what is declared of the switch."""
    return field(default=default, metadata={"switch": switch})


def switches_of(recipe: Any) -> dict[str, Switch]:
    """Return the switches of a Recipe, or of the class, by the names of their fields and in their order."""
    return {each.name: cast(Switch, each.metadata["switch"]) for each in fields(recipe) if each.default is not MISSING}
