"""Checks of arguments; every error names the argument, the value and what is allowed.

Numbers of numpy and tensors of one number count as numbers; True and False do not.
A wrong type raises TypeError, or ``kind``; a value out of range, NaN included, raises ValueError.
"""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

LARGEST_SEED = 2**32 - 1
LARGEST_FLOAT = sys.float_info.max
SMALLEST_FLOAT = 5e-324
"""The smallest number above 0."""


def whole_number(
    name: str,
    value: object,
    low: int,
    high: int | None = None,
    *,
    allowed: str = "",
    kind: type[Exception] = TypeError,
) -> int:
    """Return a whole number from ``low`` to ``high``, None for no limit; errors describe the range by ``allowed``."""
    allowed = allowed or f"a whole number from {low}{'' if high is None else f' to {high:,}'}"
    return int(_in_range(name, value, Integral, low, math.inf if high is None else high, allowed, kind))


def number(
    name: str, value: object, low: float, high: float, *, allowed: str = "", kind: type[Exception] = TypeError
) -> float:
    """Return a number from ``low`` to ``high`` as a float; errors describe the range by ``allowed``."""
    allowed = allowed or f"a number from {low:g} to {high:g}"
    return float(_in_range(name, value, Real, low, high, allowed, kind))


def _in_range(name: str, value: Any, of: type, low: float, high: float, allowed: str, kind: type[Exception]) -> Any:
    plain: Any = value
    with suppress(RuntimeError, ValueError, TypeError):  # of several numbers, or without memory
        plain = value.item() if hasattr(value, "dtype") else value
    is_number: bool = isinstance(plain, of) and not isinstance(plain, bool)
    if not is_number:
        raise kind(f"{name} must be {allowed}, got {_few_values(value)}")
    if not low <= plain <= high:  # NaN is nowhere between them
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return plain


def pair(name: str, value: object, low: float, high: float) -> tuple[float, float]:
    """Return two numbers from ``low`` to ``high`` as floats."""
    allowed = f"two numbers, each from {low:g} to {high:g}"
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{name} must be {allowed}, got {_few_values(value)}")
    if len(value) != 2:
        raise ValueError(f"{name} must be {allowed}, got {_few_values(value)}")
    return number(f"{name}[0]", value[0], low, high), number(f"{name}[1]", value[1], low, high)


def on_off(name: str, value: object, *, kind: type[Exception] = TypeError) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        raise kind(f"{name} must be True or False, got {_few_values(value)}")
    return value


def one_of(name: str, value: object, options: Iterable[str], *, kind: type[Exception] = TypeError) -> str:
    """Return one of some texts."""
    options = tuple(options)
    if not isinstance(value, str) or value not in options:
        error = ValueError if isinstance(value, str) else kind
        raise error(
            f"{name} must be one of {', '.join(map(repr, options))}, got {_few_values(value)}"
            f"{did_you_mean(value, options)}"
        )
    return value


def near_names(name: str, options: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Return up to three of the options that are spelled like a name, the nearest first."""
    return difflib.get_close_matches(name.lower(), list(options), n=3, cutoff=cutoff)


def did_you_mean(value: object, options: Iterable[str]) -> str:
    """Return "; did you mean 'digits'?" for the option that is spelled like ``value``, "" where none is."""
    near = near_names(value, options) if isinstance(value, str) else []
    return f"; did you mean {str(near[0])!r}?" if near else ""


def brief(value: Any) -> str:
    """Write a value in a few words."""
    try:
        return _written(value)
    except Exception:  # an object of the caller's may raise anything; a list may contain itself
        return f"something of type {type(value).__name__}"


def without_values(value: Any, write: Callable[[Any], str] = brief) -> str:
    """Write a value, and of the tensors in it their shapes and types only."""
    if getattr(value, "shape", ()) and hasattr(value, "dtype"):
        return f"a tensor of shape {tuple(value.shape)} and {value.dtype}"
    parts = list(value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ())
    if not any(hasattr(part, "dtype") or isinstance(part, (list, tuple, dict)) for part in parts):
        return write(value)
    try:
        texts = [without_values(part, write) for part in parts[:8]] + ["..."] * (len(parts) > 8)
    except RecursionError:  # a list may contain itself
        return f"something of type {type(value).__name__}"
    if isinstance(value, dict):
        texts = [f"{key!r}: {word}" for key, word in zip(value, texts, strict=False)]
    return f"[{', '.join(texts)}]"


def _few_values(value: Any) -> str:
    """Write a value; of a tensor with more than a few numbers only the shape and type."""
    few = hasattr(value, "shape") and math.prod(value.shape) <= 6
    return repr(value) if few else without_values(value, repr)


def _written(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    shape = getattr(value, "shape", None)
    if shape is not None and (len(shape) > 1 or (len(shape) == 1 and shape[0] > 6)):
        return f"a tensor of shape {tuple(shape)}"
    if shape is not None:
        return _written(value.tolist()) if len(shape) else _written(value.item())
    if isinstance(value, (list, tuple)) and len(value) <= 8:
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, dict) and len(value) <= 8:
        return "{" + ", ".join(f"{key!r}: {_written(part)}" for key, part in value.items()) + "}"
    if isinstance(value, (list, tuple, str, bytes)):
        value = value[:100]  # the rest is cut off in any case; it may be millions
    text = getattr(value, "__name__", None) if isinstance(value, Callable) else None  # type: ignore[arg-type]
    text = text or repr(value)
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= 90 else f"{text[:87]}..."


def require_trainable(owner: str, name: str, models: Iterable[Any], advice: str) -> None:
    """Raise ValueError for a lazy parameter, with ``advice`` on it, and for models that have nothing to train."""
    from torch.nn.parameter import is_lazy

    params = [each for model in models for each in model.named_parameters()]
    if lazy := next((key for key, param in params if is_lazy(param)), None):
        raise ValueError(f"{owner}: {lazy} of {name} has no shape before a first batch: {advice}")
    if not any(param.requires_grad for _, param in params):
        raise ValueError(f"{owner}: {name} has no parameter that wants a gradient, so there is nothing to train")
