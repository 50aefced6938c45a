"""What was said beside what is expected: whether it is of that kind, and whether both are alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from ..._checks import brief


class MismatchError(Exception):
    """The answer is of another kind than what is asked for; the message says which is which."""


def alike(one: Any, other: Any, relative: float, absolute: float) -> bool:
    """Compare numbers and tensors within the tolerances, lists and dicts part by part; nan is like nan."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape or one.is_complex() != other.is_complex():
            return False
        kind = torch.complex128 if one.is_complex() else torch.float64
        one, other = (tensor.detach().cpu().to(kind) for tensor in (one, other))
        return torch.allclose(one, other, rtol=relative, atol=absolute, equal_nan=True)
    one, other = _without_tensor(one), _without_tensor(other)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Real) and isinstance(other, Real):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=relative, abs_tol=absolute)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        return all(alike(mine, theirs, relative, absolute) for mine, theirs in zip(one, other, strict=True))
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        return all(alike(one[key], other[key], relative, absolute) for key in one)
    return type(one) is type(other) and bool(one == other)


def _without_tensor(value: Any) -> Any:
    """Return the number in a tensor that holds one, anything else as it is."""
    return value.item() if isinstance(value, Tensor) and value.numel() == 1 else value


def coerce_like(said: Any, right: Any) -> Any:
    """Return what was said in the form of what is expected; raise MismatchError where it has no such form."""
    if said is None and right is not None:
        raise MismatchError(f"Your answer is None, {_wanted(right)} is wanted. Is a `return` missing")
    kind = _kind(right)
    said = _converted(said, right)
    if kind is not None and _kind(said) is not kind:
        raise MismatchError(f"{_wanted(right)} is wanted, you have {brief(said)}")
    if kind is Tensor and said.shape != right.shape:
        raise MismatchError(f"{_wanted(right)} is wanted, yours has the shape {tuple(said.shape)}")
    if kind is Mapping:
        if said.keys() != right.keys():
            raise MismatchError(f"The keys {_keys(right)} are wanted, yours are {_keys(said)}")
        return {key: coerce_like(said[key], right[key]) for key in right}
    if kind is Sequence:
        if len(said) != len(right):
            raise MismatchError(f"{_wanted(right)} is wanted, yours has {len(said)}")
        return type(right)(coerce_like(mine, wanted) for mine, wanted in zip(said, right, strict=True))
    return said


def _converted(said: Any, right: Any) -> Any:
    """Return a tensor where one is wanted of numbers, and what a tensor holds where that is wanted."""
    kind = _kind(right)
    if isinstance(said, Tensor):
        if said.is_meta:
            raise MismatchError(f"{_wanted(right)} is wanted, your tensor is on the device `meta` and holds no numbers")
        said = said.detach()
        said = said if said.layout is torch.strided else said.to_dense()
        if (kind is bool and said.dtype is torch.bool) or (
            kind is Real and said.dtype is not torch.bool and not said.is_complex()
        ):
            return _without_tensor(said)
        if kind is Sequence and said.dim() and len(said) == len(right):
            return list(said)
    elif kind is Tensor and isinstance(said, (list, tuple, float, int)) and not isinstance(said, bool):
        with suppress(TypeError, ValueError, RuntimeError):
            return torch.as_tensor(said)
    return said


def _kind(value: Any) -> type | None:
    """Return the first of these that a value is: one of another kind is not taken for it."""
    for kind in (Tensor, bool, Real, str, Mapping):
        if isinstance(value, kind):
            return kind
    return Sequence if isinstance(value, (list, tuple)) else None


def _wanted(right: Any) -> str:
    """Name what is wanted."""
    kind = _kind(right)
    if kind is Tensor:
        return f"A tensor of shape {tuple(right.shape)}"
    if kind is Mapping:
        return f"A dict with the keys {_keys(right)}"
    if kind is Sequence:
        return f"A {type(right).__name__} of {len(right)}"
    words: dict[type | None, str] = {bool: "True or False", Real: "A number", str: "A text"}
    return words.get(kind, f"A {type(right).__name__}")


def _keys(mapping: Mapping[Any, Any]) -> str:
    return ", ".join(map(repr, mapping)) or "none"
