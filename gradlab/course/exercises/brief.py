"""A value in a few words, for a case or a verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def brief(value: Any) -> str:
    """Write a value in a few words for a case or a remark."""
    try:
        return _written(value)
    except Exception:  # a learner's object may refuse to be written, in any way; a list may contain itself
        return f"something of type {type(value).__name__}"


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
    return text if len(text) <= 90 else f"{text[:87]}..."
