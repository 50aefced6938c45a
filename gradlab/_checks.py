"""Checks of arguments, with error messages that name the argument, its value and the allowed values.

NumPy scalars and one-element tensors count as numbers; True and False do not. The parameter ``allowed`` describes the
allowed values for the message. A value of the wrong type raises ``kind``; any other invalid value raises ValueError.
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
SMALLEST_FLOAT = 5e-324  # the smallest float above 0


def whole_number(
    name: str, value: object, low: int, high: int | None = None, *, allowed: str = "", kind: type[Exception] = TypeError
) -> int:
    """Check that ``value`` is a whole number from ``low`` to ``high`` (None: no maximum), and return it as an int."""
    allowed = allowed or f"a whole number from {low}{'' if high is None else f' to {high:,}'}"
    return int(_in_range(name, value, Integral, low, math.inf if high is None else high, allowed, kind))


def number(
    name: str, value: object, low: float, high: float, *, allowed: str = "", kind: type[Exception] = TypeError
) -> float:
    """Check that ``value`` is a number from ``low`` to ``high``, and return it as a float."""
    allowed = allowed or f"a number from {low:g} to {high:g}"
    return float(_in_range(name, value, Real, low, high, allowed, kind))


def _in_range(name: str, value: Any, of: type, low: float, high: float, allowed: str, kind: type[Exception]) -> Any:
    plain: Any = value
    with suppress(RuntimeError, ValueError, TypeError):  # ``item()`` fails for several elements, and for meta tensors
        plain = value.item() if hasattr(value, "dtype") else value
    is_number: bool = isinstance(plain, of) and not isinstance(plain, bool)
    if not is_number:
        raise kind(f"{name} must be {allowed}, got {_few_values(value)}")
    if not low <= plain <= high:  # also true for NaN
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return plain


def pair(name: str, value: object, low: float, high: float) -> tuple[float, float]:
    """Check that ``value`` is a tuple or list of two numbers from ``low`` to ``high``, and return a tuple of floats."""
    allowed = f"two numbers, each from {low:g} to {high:g}"
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        kind = ValueError if isinstance(value, (tuple, list)) else TypeError
        raise kind(f"{name} must be {allowed}, got {_few_values(value)}")
    return number(f"{name}[0]", value[0], low, high), number(f"{name}[1]", value[1], low, high)


def on_off(name: str, value: object, *, kind: type[Exception] = TypeError) -> bool:
    """Check that ``value`` is True or False, and return it."""
    if not isinstance(value, bool):
        raise kind(f"{name} must be True or False, got {_few_values(value)}")
    return value


def one_of(name: str, value: object, options: Iterable[str], *, kind: type[Exception] = TypeError) -> str:
    """Return ``value`` if it is one of the strings ``options``, or raise an error that suggests a similar option."""
    options = tuple(options)
    if not isinstance(value, str) or value not in options:
        error = ValueError if isinstance(value, str) else kind
        got = f"{_few_values(value)}{did_you_mean(value, options)}"
        raise error(f"{name} must be one of {', '.join(map(repr, options))}, got {got}")
    return value


def near_names(name: str, options: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Return up to three of ``options`` whose spelling is close to ``name``, the closest first."""
    return difflib.get_close_matches(name.lower(), list(options), n=3, cutoff=cutoff)


def did_you_mean(value: object, options: Iterable[str]) -> str:
    """Return text such as "; did you mean 'digits'?" for the option most like ``value``, or "" if none is similar."""
    near = near_names(value, options) if isinstance(value, str) else []
    return f"; did you mean {str(near[0])!r}?" if near else ""


def brief(value: Any) -> str:
    """Return a short description of ``value`` for a message, or only its type if the value cannot be formatted."""
    try:
        return _written(value)
    except Exception:  # formatting a user's object may raise any error; a list may contain itself
        return f"something of type {type(value).__name__}"


def without_values(value: Any, write: Callable[[Any], str] = brief) -> str:
    """Describe ``value``, with only the shape and dtype of tensors that have dimensions; ``write`` formats the rest."""
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
    """Return the repr of ``value``, but only the shape and dtype of tensors in a list or with over 6 elements."""
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
        value = value[:100]  # the result is cut below anyway, and a full repr may be huge
    text = getattr(value, "__name__", None) if isinstance(value, Callable) else None  # type: ignore[arg-type]
    text = text or repr(value)
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= 90 else f"{text[:87]}..."


def require_trainable(owner: str, name: str, models: Iterable[Any], advice: str) -> None:
    """Raise ValueError if a parameter of ``models`` is lazy (``advice`` ends the message), or if none requires grad."""
    from torch.nn.parameter import is_lazy

    params = [each for model in models for each in model.named_parameters()]
    if lazy := next((key for key, param in params if is_lazy(param)), None):
        problem = "is a lazy parameter, which has no shape before the first forward pass"
        raise ValueError(f"{owner}: {lazy} of {name} {problem}: {advice}")
    if not any(param.requires_grad for _, param in params):
        raise ValueError(f"{owner}: {name} has no parameter that requires grad, so there is nothing to train")
