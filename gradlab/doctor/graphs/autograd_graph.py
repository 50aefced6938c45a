"""Searches of autograd graphs, and metadata that marks nodes in them."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

from torch import Tensor

from ... import _torch

_MOST_NODES = 20_000
_MOST_ROOTS = 512
_MOST_OLD = 200  # nodes
LOOK_EVERY = 4  # backward passes between two counts of live graphs
_SAME = ("View", "ReshapeAlias", "UnsafeView", "Squeeze", "Unsqueeze", "ToCopy", "Clone", "Alias")
_SUMMED = (*_SAME, "Add", "Sub", "Rsub", "Neg", "Mul", "Div", "Stack")
_MOST_SUMMED = 64  # nodes
_SCALED, _ROOT = "gradlab.scaled", "gradlab.root"


class Token:
    """A mark in a node's metadata, freed with the node. Roots sets ``born`` to the number of backward passes so far."""

    __slots__ = ("__weakref__", "born")
    born: int


class Roots:
    """A record of losses or model outputs, to count those that stay alive long after their backward pass."""

    def __init__(self) -> None:
        self._tokens: WeakSet[Token] = WeakSet()

    def alive(self, now: int) -> int:
        """Return the number of recorded nodes that are still alive at pass ``now`` and old as in ``old_batches``."""
        return sum(token.born < now - 2 for token in self._tokens)

    def add(self, node: Any, now: int) -> None:
        """Record ``node`` as a root; ``now`` is the number of backward passes so far."""
        node.metadata[_ROOT] = token = Token()
        token.born = now
        if len(self._tokens) < _MOST_ROOTS:
            self._tokens.add(token)


def old_batches(root: Any, now: int, *, through: bool) -> set[int]:
    """Return the ``Token.born`` of all old losses and model outputs among the ``_MOST_OLD`` nodes nearest to ``root``.

    A node is old if at least two backward passes began between its recording and pass ``now``. If ``through`` is True,
    the search continues past old nodes and also finds the older states that a state was computed from. Otherwise it
    stops at old nodes, so that a loss and the outputs it was computed from are not both counted.
    """

    def is_old(node: Any) -> bool:
        return (token := node.metadata.get(_ROOT)) is not None and token.born < now - 2

    near = nodes(root, most=_MOST_OLD, ends=lambda node: is_old(node) and not through)
    return {node.metadata[_ROOT].born for node in near if is_old(node)}


def grad_fn_of(value: Any) -> Any:
    """Return ``value.grad_fn``, or None for a value without one."""
    try:
        return value.grad_fn if isinstance(value, Tensor) else None
    except RuntimeError:  # raised for a view made under no_grad() if its base was changed in place later
        return None


def mark_scaled(tensor: Tensor) -> None:
    """Mark the graph of a loss that ``scaler.scale()`` has returned."""
    if tensor.grad_fn is not None:
        metadata: Any = tensor.grad_fn.metadata  # a property, which PyTorch's stub declares as a method
        metadata[_SCALED] = True


def scaled(node: Any) -> bool:
    """Return whether ``mark_scaled`` has marked one of the 12 nodes nearest to ``node``, the root of a loss's graph."""
    return any(_SCALED in inner_node.metadata for inner_node in nodes(node, most=12))


def nodes(*roots: Any, most: int = _MOST_NODES, ends: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """Yield up to ``most`` graph nodes, breadth first from ``roots``, not going past a node that ``ends`` accepts."""
    waiting = deque(root for root in roots if root is not None)
    visited: set[Any] = set()
    while waiting and len(visited) < most:
        node = waiting.popleft()
        if node in visited:
            continue
        visited.add(node)
        yield node
        if ends is None or not ends(node):
            waiting.extend(inner(node))


def inner(node: Any) -> list[Any]:
    """Return the nodes in ``node.next_functions``, without None."""
    return [following for following, _ in node.next_functions if following is not None]


def operation(node: Any) -> str:
    """Return the name of a node's operation, such as "LogSoftmax" for the node LogSoftmaxBackward0."""
    name, back, _ = node.name().rpartition("Backward")
    return str(name) if back else str(node.name())


def leaves(node: Any) -> list[tuple[Tensor, int]]:
    """Return the leaf tensors of a graph, each with its distance from ``node`` in edges, the nearest first."""
    found_leaves, level, distance = [], [node] if node is not None else [], 0
    visited: set[Any] = set()
    while level and len(visited) < _MOST_NODES:
        visited.update(level)
        found_leaves += [(each.variable, distance) for each in level if each.name() == _torch.ACCUMULATE_GRAD]
        after = dict.fromkeys(following for each in level for following in inner(each))
        level = [each for each in after if each not in visited]
        distance += 1
    return found_leaves


def older(node: Any, number: int) -> bool:
    """Return whether a graph has a node whose sequence number is below ``number``."""
    return any(n._sequence_nr() < number for n in nodes(node) if hasattr(n, "_sequence_nr"))  # leaves have none


def weighted_means(root: Any) -> tuple[float, tuple[float, ...], Any]:
    """Return (total, factors, target_weight) for a loss that is a sum of means, each multiplied by constant factors.

    ``total`` is the sum of the means' weights, each the absolute product of a mean's factors. ``factors`` has the
    factors other than 1 of the first mean with such factors. ``target_weight`` is the total weight of the targets if
    the first mean is a cross-entropy, else None. A sum divided by its number of rows or elements also counts as a mean.
    """
    total, first_factors, target_weight = 0.0, tuple[float, ...](), None
    waiting: list[tuple[Any, float, tuple[float, ...]]] = [(root, 1.0, ())]
    for node, weight, factors in waiting:  # the list grows during the loop
        if len(waiting) > _MOST_SUMMED:
            break
        name, parts = operation(node), inner(node)
        if _is_mean(node):
            target_weight = getattr(node, "_saved_total_weight", None) if not total else target_weight
            first_factors = first_factors or factors
            total += abs(weight)
        elif name in ("Mul", "Div") and len(parts) == 1 and _SCALED not in node.metadata:
            if (factor := _number(node, name)) is not None:
                more = factors if factor == 1 else (*factors, factor)
                waiting.append((parts[0], weight * factor, more))
        elif name in _SUMMED or (name == "Sum" and parts and operation(parts[0]) == "Stack"):
            waiting += [(part, weight, factors) for part in parts]
    return total, first_factors, target_weight


def _number(node: Any, name: str) -> float | None:
    """Return the factor that a Mul or Div node applies, or None if its operand is 0, on a GPU, or not a scalar."""
    saved = getattr(node, "_saved_other", None)
    saved = getattr(node, "_saved_self", None) if saved is None else saved
    if isinstance(saved, Tensor):
        saved = saved.tolist() if saved.dim() == 0 and saved.device.type == "cpu" else None
    if not isinstance(saved, (int, float)) or not saved:
        return None
    return 1 / float(saved) if name == "Div" else float(saved)


def _is_mean(node: Any) -> bool:
    """Return whether a node is a mean, a loss reduced to a mean, or a sum divided by its number of rows or elements."""
    reduction = getattr(node, "_saved_reduction", None)  # 0 is "none", 1 "mean" and 2 "sum" (ATen/core/Reduction.h)
    if reduction is not None:
        return bool(reduction == 1)
    if operation(node) == "Mean":
        return True
    if operation(node) != "Div" or len(parts := inner(node)) != 1 or operation(parts[0]) != "Sum":
        return False
    sizes = getattr(parts[0], "_saved_self_sym_sizes", ())
    factor = _number(node, "Div")
    rows = itertools.accumulate(sizes, lambda product, size: product * size)
    return factor is not None and any(size > 1 and abs(factor * size - 1) < 1e-6 for size in rows)
