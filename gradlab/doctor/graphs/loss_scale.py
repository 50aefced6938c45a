"""How a loss is made of means, and what each is multiplied with: what a window of micro-batches has to divide."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from .autograd_graph import inner, is_scaling, operation

_SAME = ("View", "ReshapeAlias", "UnsafeView", "Squeeze", "Unsqueeze", "ToCopy", "Clone", "Alias")
_MOST = 64  # nodes

Scale = tuple[float, tuple[float, ...], Any]


def loss_scale(root: Any) -> Scale:
    """Return the weights of the means that a loss is a sum of, all together; what the first of them is multiplied with;
    and the number of targets that it is a mean over, where it is a cross entropy.

    A sum that is divided by its number of rows or of elements is a mean; by anything else, it is none.
    """
    mass, scales, tokens = 0.0, tuple[float, ...](), None
    for node, weight, factors in _walk(root):
        if _is_mean(node):
            tokens = getattr(node, "_saved_total_weight", None) if not mass else tokens
            scales = scales or factors
            mass += abs(weight)
    return mass, scales, tokens


def _walk(root: Any) -> Iterator[tuple[Any, float, tuple[float, ...]]]:
    """Yield the nodes that are added up in a loss, each with its weight and the numbers that make it."""
    waiting: list[tuple[Any, float, tuple[float, ...]]] = [(root, 1.0, ())]
    for node, weight, factors in waiting:  # it grows meanwhile
        if len(waiting) > _MOST:
            return
        yield node, weight, factors
        name, parts = operation(node), inner(node)
        if _is_mean(node):
            continue
        if name in ("Add", "Sub", "Rsub") or (name == "Sum" and parts and operation(parts[0]) == "Stack"):
            waiting += [(one, weight, factors) for one in parts]
        elif name in ("Mul", "Div") and len(parts) == 1 and not is_scaling(node):
            factor = _number(node, name)
            if factor is not None:
                more = factors if factor == 1 else (*factors, factor)
                waiting.append((parts[0], weight * factor, more))
        elif name in (*_SAME, "Neg", "Mul", "Div", "Stack"):
            waiting += [(one, weight, factors) for one in parts]


def _number(node: Any, name: str) -> float | None:
    """Return the number that a node multiplies with; None if it is not known without a wait for a GPU."""
    saved = getattr(node, "_saved_other", None)
    saved = getattr(node, "_saved_self", None) if saved is None else saved
    if isinstance(saved, Tensor):
        saved = saved.item() if saved.numel() == 1 and saved.device.type == "cpu" else None
    if not isinstance(saved, (int, float)) or not saved:
        return None
    return 1 / float(saved) if name == "Div" else float(saved)


def _is_mean(node: Any) -> bool:
    """Return whether a node is a mean over a batch: by its reduction, or a sum that is divided by what it is over."""
    reduction = getattr(node, "_saved_reduction", None)  # 0 none, 1 mean, 2 sum: ATen/core/Reduction.h
    if reduction is not None:
        return bool(reduction == 1)
    if operation(node) == "Mean":
        return True
    if operation(node) != "Div" or len(parts := inner(node)) != 1 or operation(parts[0]) != "Sum":
        return False
    sizes = getattr(parts[0], "_saved_self_sym_sizes", ())
    factor = _number(node, "Div")
    rows = itertools.accumulate(sizes, lambda one, other: one * other)
    return factor is not None and any(size > 1 and abs(factor * size - 1) < 1e-6 for size in rows)
