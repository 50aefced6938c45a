"""Activation checkpointing of a model's repeated blocks: only their inputs are kept, and activations are recomputed.

It trades time for memory (Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174): the backward
pass runs each block's forward again to recompute the activations that were not saved. PyTorch makes dropout draw the
same numbers again; running averages (BatchNorm) are updated twice.
"""

from __future__ import annotations

import functools

from torch import nn
from torch.utils.checkpoint import checkpoint


def repeated_blocks(model: nn.Module) -> dict[str, nn.Module]:
    """Return the repeated blocks of a model by name: the instances of the repeated class with the most parameters.

    A block has submodules (a single ``Linear`` saves only its input), is not a container such as ``nn.Sequential``, and
    is not inside a block of the same class. For a model without repeated blocks, the dict is empty.
    """
    kinds: dict[type, dict[str, nn.Module]] = {}
    for name, module in model.named_modules():
        composed = any(True for _ in module.children()) and not isinstance(module, (nn.ModuleList, nn.ModuleDict))
        if name and composed and type(module) is not nn.Sequential:
            alike = kinds.setdefault(type(module), {})
            if not any(name.startswith(f"{outer}.") for outer in alike):
                alike[name] = module
    repeated = [alike for alike in kinds.values() if len(alike) > 1]
    sizes = [sum(p.numel() for block in alike.values() for p in block.parameters()) for alike in repeated]
    return repeated[sizes.index(max(sizes))] if repeated else {}


def checkpoint_blocks(model: nn.Module) -> None:
    """Checkpoint the repeated blocks of a model, in place; raises ValueError if the model has no repeated blocks."""
    blocks = repeated_blocks(model).values()
    if not blocks:
        raise ValueError(
            f"checkpointing needs repeated blocks, and {type(model).__name__} has none: no class of modules with "
            "submodules occurs twice. Wrap parts of forward() in torch.utils.checkpoint.checkpoint"
        )
    for block in blocks:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
