"""Activation checkpointing for a model as it is: keep the inputs of its repeated blocks, compute the rest again.

Memory for time (Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174): backward runs the
forward of each block once more to get back what that block would have saved. PyTorch sees to it that dropout draws the
same numbers again; running averages (BatchNorm) are updated twice.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
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
    return max(repeated, key=_count_parameters, default={})


def checkpoint_blocks(model: nn.Module) -> None:
    """Turn checkpointing on for good, in a model that is a copy.

    The repeated blocks are checkpointed one by one; an ``nn.Sequential`` without any is cut into about sqrt(n) segments
    of which all but the last are checkpointed. Any other model is a ValueError.
    """
    blocks = list(repeated_blocks(model).values())
    for block in blocks:
        block.forward = functools.partial(_checkpointed, block.forward)
    if not blocks and isinstance(model, nn.Sequential) and len(model) > 1:
        model.forward = functools.partial(_segmented, model)  # type: ignore[method-assign]
    elif not blocks:
        raise ValueError(
            f"checkpointing needs blocks that repeat, and {type(model).__name__} has none: no class of module of which "
            "two or more are made of other modules. Wrap parts of forward() in torch.utils.checkpoint.checkpoint"
        )


def _checkpointed(forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if not torch.is_grad_enabled():
        return forward(*args, **kwargs)
    return checkpoint(forward, *args, use_reentrant=False, **kwargs)


def _segmented(model: nn.Sequential, x: Tensor) -> Any:
    if not torch.is_grad_enabled():
        return nn.Sequential.forward(model, x)
    segments = max(2, round(math.sqrt(len(model))))
    return checkpoint_sequential(list(model), segments, x, use_reentrant=False)


def _count_parameters(alike: dict[str, nn.Module]) -> int:
    return sum(p.numel() for block in alike.values() for p in block.parameters())
