"""What an answer must look like: as what is expected does."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import torch

from .brief import brief


class MismatchError(Exception):
    """The answer is of another kind than what is asked for; the message says which is which."""


def coerce_like(said: Any, right: Any) -> Any:
    """Return what was said in the form of what is expected; raise MismatchError where it has no such form."""
    if said is None and right is not None:
        raise MismatchError(f"Your answer is None, {_kind(right)} is wanted. Is a `return` missing")
    if isinstance(said, torch.Tensor):
        said = _numbers(said, right)
    if isinstance(right, torch.Tensor):
        return _tensor(said, right)
    if isinstance(right, bool):
        if isinstance(said, torch.Tensor) and said.numel() == 1 and said.dtype is torch.bool:
            return bool(said)
        return _same_kind(said, right, isinstance(said, bool))
    if isinstance(right, Real):
        return _number(said, right)
    if isinstance(right, str):
        return _same_kind(said, right, isinstance(said, str))
    if isinstance(right, Mapping):
        _same_kind(said, right, isinstance(said, Mapping))
        if said.keys() != right.keys():
            raise MismatchError(f"The keys {_words(right)} are wanted, yours are {_words(said)}")
        return {key: coerce_like(said[key], right[key]) for key in right}
    if isinstance(right, (list, tuple)):
        if isinstance(said, torch.Tensor) and said.dim() and len(said) == len(right):
            said = list(said)
        _same_kind(said, right, isinstance(said, (list, tuple)))
        if len(said) != len(right):
            raise MismatchError(f"{_kind(right)} is wanted, yours has {len(said)}")
        return type(right)(coerce_like(mine, wanted) for mine, wanted in zip(said, right, strict=True))
    return said


def _numbers(said: torch.Tensor, right: Any) -> torch.Tensor:
    """Return a tensor as a dense one without a graph."""
    if said.is_meta:
        raise MismatchError(f"{_kind(right)} is wanted, your tensor is on the device `meta` and holds no numbers")
    said = said.detach()
    return said if said.layout is torch.strided else said.to_dense()


def _number(said: Any, right: Any) -> Any:
    if isinstance(said, torch.Tensor) and said.numel() == 1 and not said.is_complex() and said.dtype is not torch.bool:
        said = said.item()
    return _same_kind(said, right, isinstance(said, Real) and not isinstance(said, bool))


def _tensor(said: Any, right: torch.Tensor) -> torch.Tensor:
    if isinstance(said, (list, tuple, float, int)) and not isinstance(said, bool):
        try:
            said = torch.as_tensor(said)
        except (TypeError, ValueError, RuntimeError):
            raise MismatchError(f"{_kind(right)} is wanted, you have {brief(said)}") from None
    _same_kind(said, right, isinstance(said, torch.Tensor))
    if said.shape != right.shape:
        raise MismatchError(f"{_kind(right)} is wanted, yours has the shape {tuple(said.shape)}")
    return said


def _same_kind(said: Any, right: Any, good: bool) -> Any:
    if not good:
        raise MismatchError(f"{_kind(right)} is wanted, you have {brief(said)}")
    return said


def _words(mapping: Mapping[Any, Any]) -> str:
    return ", ".join(repr(key) for key in mapping) or "none"


def _kind(right: Any) -> str:
    """Name what is wanted."""
    if isinstance(right, torch.Tensor):
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
