"""Checks of what a caller hands in; every error names the thing, the value and what is allowed.

True and False are no numbers here, though Python takes them for 1 and 0. What is of the wrong kind is a TypeError, or
what ``kind`` says instead; what is out of range is a ValueError, NaN too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from numbers import Integral

LARGEST_SEED = 2**32 - 1
LARGEST_FLOAT = sys.float_info.max
SMALLEST_FLOAT = 5e-324
"""The least that is above 0."""


def whole_number(
    name: str,
    value: object,
    low: int,
    high: int | None = None,
    *,
    allowed: str = "",
    kind: type[Exception] = TypeError,
) -> int:
    """Return a whole number from ``low`` to ``high``, None for no limit; ``allowed`` says it in other words."""
    allowed = allowed or f"a whole number from {low}{'' if high is None else f' to {high:,}'}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise kind(f"{name} must be {allowed}, got {value!r}")
    number = int(value)
    if number < low or (high is not None and number > high):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return number


def number(
    name: str, value: object, low: float, high: float, *, allowed: str = "", kind: type[Exception] = TypeError
) -> float:
    """Return a number from ``low`` to ``high`` as a float; ``allowed`` says it in other words."""
    allowed = allowed or f"a number from {low:g} to {high:g}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise kind(f"{name} must be {allowed}, got {value!r}")
    if not low <= value <= high:  # NaN is nowhere between them
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return float(value)


def pair(name: str, value: object, low: float, high: float) -> tuple[float, float]:
    """Return two numbers from ``low`` to ``high`` as floats."""
    allowed = f"two numbers, each from {low:g} to {high:g}"
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    if len(value) != 2:
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return number(f"{name}[0]", value[0], low, high), number(f"{name}[1]", value[1], low, high)


def on_off(name: str, value: object, *, kind: type[Exception] = TypeError) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        raise kind(f"{name} must be True or False, got {value!r}")
    return value


def one_of(name: str, value: object, options: Iterable[str], *, kind: type[Exception] = TypeError) -> str:
    """Return one of some texts."""
    options = tuple(options)
    if not isinstance(value, str) or value not in options:
        error = ValueError if isinstance(value, str) else kind
        raise error(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value
