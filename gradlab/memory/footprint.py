"""How many bytes the weights, their gradients and the optimizer's state take, each storage counted once."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from .storages import dense_parts, iter_tensors


def footprint(model: nn.Module, optimizers: Iterable[torch.optim.Optimizer]) -> dict[str, int]:
    """Return bytes for "weights" (parameters and buffers), "gradients" and "optimizer".

    Storages are counted, not elements: views and tied weights share one, and a small view keeps a large one alive. A
    storage that serves two categories is counted for the first.
    """
    seen: set[int] = set()
    return {
        "weights": _bytes([*model.parameters(), *model.buffers()], seen),
        "gradients": _bytes((p.grad for p in model.parameters() if p.grad is not None), seen),
        "optimizer": _bytes((t for o in optimizers for t in iter_tensors(o.state.values())), seen),
    }


def _bytes(these: Iterable[Tensor], seen: set[int]) -> int:
    total = 0
    for tensor in (part for whole in these for part in dense_parts(whole)):
        storage = tensor.untyped_storage()
        if (key := storage._cdata) not in seen:
            seen.add(key)
            total += storage.nbytes()
    return total
