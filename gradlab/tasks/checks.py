"""Checks of what a caller hands to a task; every error names the field, the value and what is allowed."""

from __future__ import annotations

from numbers import Integral

import torch
from torch import Tensor

DEVICES = ("auto", "cpu", "cuda")
LARGEST_SEED = 2**32 - 1


def number(field: str, value: object, low: float, high: float) -> float:
    """Return a number from `low` to `high` as a float.

    Raises TypeError for what is no number (True and False are none), ValueError for NaN and for one out of range.
    """
    allowed = f"a number from {low:g} to {high:g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{field} must be {allowed}, got {value!r}")
    if not low <= value <= high:  # NaN and infinity fail this too
        raise ValueError(f"{field} must be {allowed}, got {value!r}")
    return float(value)


def pair(field: str, value: object, low: float, high: float) -> tuple[float, float]:
    """Return two numbers from `low` to `high` as floats; anything else is a TypeError or ValueError."""
    allowed = f"two numbers, each from {low:g} to {high:g}"
    if not isinstance(value, tuple | list):
        raise TypeError(f"{field} must be {allowed}, got {value!r}")
    if len(value) != 2:
        raise ValueError(f"{field} must be {allowed}, got {value!r}")
    return number(f"{field}[0]", value[0], low, high), number(f"{field}[1]", value[1], low, high)


def integer(field: str, value: object, low: int, high: int) -> int:
    """Return a whole number from `low` to `high`.

    Raises TypeError for what is no whole number (True and False are none), ValueError for one out of range.
    """
    allowed = f"a whole number from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{field} must be {allowed}, got {value!r}")
    whole = int(value)
    if not low <= whole <= high:
        raise ValueError(f"{field} must be {allowed}, got {value!r}")
    return whole


def seed(value: object) -> int:
    """Return a seed, a whole number from 0 to 2**32 - 1; anything else is a TypeError or ValueError."""
    return integer("seed", value, 0, LARGEST_SEED)


def device(value: object) -> str:
    """Return "cpu" or "cuda" for "auto", "cpu" or "cuda"; "auto" takes the GPU where PyTorch sees one.

    Raises TypeError for what is no text, ValueError for another name and for "cuda" where there is no GPU.
    """
    message = f"device must be one of {', '.join(map(repr, DEVICES))}, got {value!r}"
    if not isinstance(value, str):
        raise TypeError(message)
    if value not in DEVICES:
        raise ValueError(message)
    gpu = torch.cuda.is_available()
    if value == "cuda" and not gpu:
        raise ValueError("device must be 'auto' or 'cpu', got 'cuda': PyTorch sees no CUDA GPU here")
    if value == "auto":
        return "cuda" if gpu else "cpu"
    return value


def tensors(**values: object) -> None:
    """Raise TypeError for the first that is no tensor, ValueError for one without elements."""
    for name, value in values.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a tensor, got {value!r}")
        if value.numel() == 0:
            raise ValueError(f"{name} must be a tensor with elements, got {value!r}")
