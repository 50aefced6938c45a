"""Whether two results say the same, whatever they are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import torch


def alike(one: Any, other: Any, relative: float, absolute: float) -> bool:
    """Compare numbers within the tolerances, tensors element by element, lists and dicts part by part."""
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return _tensors_alike(one, other, relative, absolute)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Real) and isinstance(other, Real):
        if math.isnan(one) and math.isnan(other):
            return True
        return math.isclose(one, other, rel_tol=relative, abs_tol=absolute)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key], relative, absolute) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(alike(a, b, relative, absolute) for a, b in pairs)
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # a learner's object may refuse to be compared, in any way
        return False


def _single(value: Any) -> Any:
    """Return the number in a tensor that holds one, anything else as it is."""
    return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value


def _tensors_alike(one: Any, other: Any, relative: float, absolute: float) -> bool:
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        one, other = _single(one), _single(other)
        both = not (isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor))
        return both and alike(one, other, relative, absolute)
    if one.shape != other.shape or one.is_complex() != other.is_complex():
        return False
    kind = torch.complex128 if one.is_complex() else torch.float64
    one, other = one.detach().cpu().to(kind), other.detach().cpu().to(kind)
    return torch.allclose(one, other, rtol=relative, atol=absolute, equal_nan=True)
