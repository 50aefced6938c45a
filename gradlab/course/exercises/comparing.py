"""What was said beside what is expected: whether it is of that kind, and whether both are alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from .definition import brief


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
        raise MismatchError(f"Your answer is None, {_kind(right)} is wanted. Is a `return` missing")
    if isinstance(said, Tensor):
        said = _dense(said, right)
    if isinstance(right, Tensor):
        return _tensor(said, right)
    if isinstance(right, bool):
        if isinstance(said, Tensor) and said.dtype is torch.bool:
            said = _without_tensor(said)
        return _same_kind(said, right, isinstance(said, bool))
    if isinstance(right, Real):
        if isinstance(said, Tensor) and not said.is_complex() and said.dtype is not torch.bool:
            said = _without_tensor(said)
        return _same_kind(said, right, isinstance(said, Real) and not isinstance(said, bool))
    if isinstance(right, str):
        return _same_kind(said, right, isinstance(said, str))
    if isinstance(right, Mapping):
        _same_kind(said, right, isinstance(said, Mapping))
        if said.keys() != right.keys():
            raise MismatchError(f"The keys {_words(right)} are wanted, yours are {_words(said)}")
        return {key: coerce_like(said[key], right[key]) for key in right}
    if isinstance(right, (list, tuple)):
        if isinstance(said, Tensor) and said.dim() and len(said) == len(right):
            said = list(said)
        _same_kind(said, right, isinstance(said, (list, tuple)))
        if len(said) != len(right):
            raise MismatchError(f"{_kind(right)} is wanted, yours has {len(said)}")
        return type(right)(coerce_like(mine, wanted) for mine, wanted in zip(said, right, strict=True))
    return said


def _dense(said: Tensor, right: Any) -> Tensor:
    """Return a tensor without a graph, and not a sparse one."""
    if said.is_meta:
        raise MismatchError(f"{_kind(right)} is wanted, your tensor is on the device `meta` and holds no numbers")
    said = said.detach()
    return said if said.layout is torch.strided else said.to_dense()


def _tensor(said: Any, right: Tensor) -> Tensor:
    if isinstance(said, (list, tuple, float, int)) and not isinstance(said, bool):
        try:
            said = torch.as_tensor(said)
        except (TypeError, ValueError, RuntimeError):
            _same_kind(said, right, False)
    _same_kind(said, right, isinstance(said, Tensor))
    if said.shape != right.shape:
        raise MismatchError(f"{_kind(right)} is wanted, yours has the shape {tuple(said.shape)}")
    return said


def _same_kind(said: Any, right: Any, good: bool) -> Any:
    if not good:
        raise MismatchError(f"{_kind(right)} is wanted, you have {brief(said)}") from None
    return said


def _words(mapping: Mapping[Any, Any]) -> str:
    return ", ".join(map(repr, mapping)) or "none"


def _kind(right: Any) -> str:
    """Name what is wanted."""
    if isinstance(right, Tensor):
        return f"A tensor of shape {tuple(right.shape)}"
    if isinstance(right, bool):
        return "True or False"
    if isinstance(right, Real):
        return "A number"
    if isinstance(right, str):
        return "A text"
    if isinstance(right, Mapping):
        return f"A dict with the keys {_words(right)}"
    if isinstance(right, (list, tuple)):
        return f"A {type(right).__name__} of {len(right)}"
    return f"A {type(right).__name__}"
