"""Activation checkpointing for a model as it is: keep the inputs of its repeated blocks, compute the rest again.

Memory for time (Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174): backward runs the
forward of each block once more to get back what that block would have saved. PyTorch sees to it that dropout draws the
same numbers again; running averages (BatchNorm) are updated twice.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


def repeated_blocks(model: nn.Module) -> dict[str, nn.Module]:
    """Return the repeated blocks of a model by name: the class of which two or more hold the most parameters.

    Blocks are made of other modules (a lone ``Linear`` saves nothing that it could compute again), and none lies inside
    another. A model without any gives an empty dict.
    """
    kinds: dict[type, dict[str, nn.Module]] = {}
    for name, module in model.named_modules():
        composed = any(True for _ in module.children()) and not isinstance(module, (nn.ModuleList, nn.ModuleDict))
        if name and composed and type(module) is not nn.Sequential:
            alike = kinds.setdefault(type(module), {})
            if not any(name.startswith(f"{outer}.") for outer in alike):
                alike[name] = module
    repeated = [alike for alike in kinds.values() if len(alike) > 1]
    return max(repeated, key=_weight, default={})


def checkpoint_blocks(model: nn.Module) -> Callable[[], None]:
    """Turn checkpointing on and return the function that turns it off again.

    The repeated blocks are checkpointed one by one; an ``nn.Sequential`` without any is cut into about sqrt(n) segments
    of which all but the last are checkpointed. Any other model is a ValueError.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"checkpoint_blocks: model must be a torch.nn.Module, got {model!r}")
    found = list(repeated_blocks(model).values())
    undo: list[Callable[[], None]] = []
    if found:
        undo = [_replaced(block, functools.partial(_checkpointed, block.forward)) for block in found]
    elif isinstance(model, nn.Sequential) and len(model) > 1:
        undo = [_replaced(model, functools.partial(_segmented, model))]
    else:
        raise ValueError(
            f"checkpointing needs blocks that repeat, and {type(model).__name__} has none: no class of module of which "
            "two or more are made of other modules. Wrap parts of forward() in torch.utils.checkpoint.checkpoint"
        )

    def off() -> None:
        while undo:
            undo.pop()()

    return off


@contextmanager
def checkpointing(model: nn.Module) -> Iterator[None]:
    """Checkpoint a model's repeated blocks inside a ``with`` block, and undo it after; errors as above."""
    off = checkpoint_blocks(model)
    try:
        yield
    finally:
        off()


def _checkpointed(forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if not torch.is_grad_enabled():
        return forward(*args, **kwargs)
    return checkpoint(forward, *args, use_reentrant=False, **kwargs)


def _segmented(model: nn.Sequential, x: Tensor) -> Any:
    if not torch.is_grad_enabled():
        return nn.Sequential.forward(model, x)
    segments = max(2, round(math.sqrt(len(model))))
    return checkpoint_sequential(list(model), segments, x, use_reentrant=False)


def _replaced(module: nn.Module, forward: Callable[..., Any]) -> Callable[[], None]:
    """Put another ``forward`` on this one module, not on its class; return what takes it away."""
    before = module.__dict__.get("forward")
    module.forward = forward

    def restore() -> None:
        if before is None:
            del module.forward
        else:
            module.forward = before

    return restore


def _weight(alike: dict[str, nn.Module]) -> int:
    return sum(p.numel() for block in alike.values() for p in block.parameters())
