"""A function that calls all_reduce, run as several processes would, in one and without threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Rank = tuple[nn.Module, int]  # its model and the number of its samples


class _Waiting(BaseException):
    """A rank has come to an all-reduce whose sum nobody knows yet; no ``except Exception`` catches it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def together(function: Callable[..., Any], make: Callable[[], list[Rank]]) -> list[nn.Module]:
    """Run ``function(model, samples, all_reduce)`` in all ranks and return their models.

    All ranks run up to their first all-reduce, where what they hand in is added up; then all of them run again from the
    beginning, made afresh, with that sum, up to the second, and so on. So a function must do the same each time.

    Raises RuntimeError where real processes would wait for ever, or could not add up what they hand in.
    """
    sums: list[Tensor] = []
    while True:
        ranks = make()
        handed = [_up_to_the_next(function, *rank, sums) for rank in ranks]
        waiting = [tensor for tensor in handed if tensor is not None]
        if not waiting:
            return [model for model, _ in ranks]
        if len(waiting) < len(ranks):
            raise RuntimeError("one rank calls all_reduce more often than the other, and would wait for ever")
        if len({tensor.shape for tensor in waiting}) > 1:
            shapes = " and ".join(str(tuple(tensor.shape)) for tensor in waiting)
            raise RuntimeError(f"the ranks hand in tensors of different shapes to the same all_reduce: {shapes}")
        sums.append(torch.stack(waiting).sum(0))


def _up_to_the_next(function: Callable[..., Any], model: nn.Module, samples: int, sums: list[Tensor]) -> Tensor | None:
    """Run one rank until an all-reduce without a known sum; return what it hands in, or None where it ends."""
    known = iter(sums)

    def all_reduce(tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"all_reduce wants a tensor, got {type(tensor).__name__}")
        total = next(known, None)
        if total is None:
            raise _Waiting(tensor.detach().clone())
        with torch.no_grad():
            tensor.copy_(total)

    try:
        function(model, samples, all_reduce)
    except _Waiting as waiting:
        return waiting.tensor
    return None
