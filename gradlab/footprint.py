"""How many bytes the weights, their gradients and the optimizer's state take, each storage counted once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn


def footprint(model: nn.Module, optimizers: Iterable[torch.optim.Optimizer]) -> dict[str, int]:
    """Return bytes for "weights" (parameters and buffers), "gradients" and "optimizer".

    Storages are counted, not elements: views and tied weights share one, and a small view keeps a large one alive. A
    storage that serves two categories is counted for the first.
    """
    seen: set[int] = set()
    return {
        "weights": _bytes([*model.parameters(), *model.buffers()], seen),
        "gradients": _bytes((p.grad for p in model.parameters() if p.grad is not None), seen),
        "optimizer": _bytes((t for o in optimizers for t in _state(o)), seen),
    }


def _state(optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    for state in optimizer.state.values():
        yield from (value for value in state.values() if isinstance(value, Tensor))


def _bytes(tensors: Iterable[Tensor], seen: set[int]) -> int:
    total = 0
    for tensor in (part for whole in tensors for part in _parts(whole)):
        storage = tensor.untyped_storage()
        if (key := storage._cdata) not in seen:
            seen.add(key)
            total += storage.nbytes()
    return total


def _parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return what holds the bytes: a sparse gradient (of an embedding) has no storage of its own."""
    return (tensor._indices(), tensor._values()) if tensor.layout is torch.sparse_coo else (tensor,)
