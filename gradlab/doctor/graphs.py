"""What can be read off autograd's graph when a backward pass begins."""

from __future__ import annotations

import ast
import inspect
import textwrap
import weakref
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from .events import NOWHERE, Site
from .sites import learner

_MOST_NODES = 20_000
_ROOTS = 24
_SCALED, _ROOT = "gradlab.scaled", "gradlab.root"
_THROUGH = ("ViewBackward0", "ReshapeAliasBackward0", "SqueezeBackward0", "UnsqueezeBackward0", "ToCopyBackward0")


class _Token:
    """Lives as long as the node of the graph that carries it."""

    __slots__ = ("__weakref__",)


class Roots:
    """The newest losses' nodes: how many are alive although their backward is long over, and who keeps them."""

    def __init__(self) -> None:
        """Start with none."""
        self._tokens: deque[weakref.ref[_Token]] = deque(maxlen=_ROOTS)

    def alive(self) -> int:
        """Return how many are alive, the two newest not counted."""
        return sum(reference() is not None for reference in list(self._tokens)[:-2])

    def add(self, node: Any) -> None:
        """Note the node of a loss whose backward begins."""
        token = _Token()
        metadata: Any = node.metadata  # a property, which its stub calls a method
        metadata[_ROOT] = token
        self._tokens.append(weakref.ref(token))

    def keeper(self, frame: FrameType | None) -> Site:
        """Find the line that keeps old graphs alive: it adds to, or appends to, a variable that holds them."""
        frame = learner(frame)
        while frame is not None:
            holders = {**frame.f_locals}
            owner = holders.get("self")
            if owner is not None and hasattr(owner, "__dict__"):
                holders |= vars(owner)
            for name, value in holders.items():
                if _holds_roots(value) and (line := _line_that_keeps(frame, name)):
                    return frame.f_code.co_filename, line
            frame = learner(frame.f_back)
        return NOWHERE


def _holds_roots(value: Any) -> bool:
    if isinstance(value, Tensor):
        return sum(_ROOT in node.metadata for node in nodes(value.grad_fn, 200)) > 2
    if isinstance(value, dict):
        value = [one for held in value.values() for one in (held if isinstance(held, list) else [held])]
    if isinstance(value, (list, tuple, deque)):
        kept = [one for one in list(value)[-8:] if isinstance(one, Tensor) and one.grad_fn is not None]
        return len(kept) > 2
    return False


def _line_that_keeps(frame: FrameType, name: str) -> int:
    """Return the line in a frame's code that adds to a name, 0 if there is none."""
    try:
        lines, first = inspect.getsourcelines(frame.f_code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return 0
    offset = max(first, 1) - 1
    for node in ast.walk(tree):
        target: ast.AST | None = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP:
            target = node.func.value
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            names = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
            target = node.targets[0] if name in names else None
        if target is not None and _named(target, name):
            return node.lineno + offset  # type: ignore[attr-defined]  # all three kinds have a line
    return 0


_KEEP = ("append", "appendleft", "add", "extend", "update")


def _named(node: ast.AST, name: str) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)


def mark_scaled(tensor: Tensor) -> None:
    """Note that a loss comes from ``scaler.scale``."""
    if tensor.grad_fn is not None:
        metadata: Any = tensor.grad_fn.metadata
        metadata[_SCALED] = True


def scaled(node: Any) -> bool:
    """Is a loss, or what it is made of at its end, a scaled one?"""
    return any(_SCALED in one.metadata for one in nodes(node, 12))


def nodes(node: Any, most: int = _MOST_NODES) -> Iterator[Any]:
    """Yield the nodes of a graph from its root on, breadth first, ``most`` at the most."""
    waiting = deque([node] if node is not None else [])
    seen: set[Any] = set()
    while waiting and len(seen) < most:
        node = waiting.popleft()
        if node in seen:
            continue
        seen.add(node)
        yield node
        waiting.extend(following for following, _ in node.next_functions if following is not None)


def leaves(node: Any) -> list[Tensor]:
    """Return the leaves of a graph, nearest to the root first."""
    return [one.variable for one in nodes(node) if one.name() == "torch::autograd::AccumulateGrad"]


def older(node: Any, number: int) -> bool:
    """Does a graph have nodes that were made before autograd's counter stood at ``number``?"""
    return any(one._sequence_nr() < number for one in nodes(node))


def mean(node: Any) -> bool:
    """Is a loss a mean over its batch that nothing divides, weighs or multiplies afterwards?"""
    if node is None:
        return False
    name, inner = node.name(), [one for one, _ in node.next_functions if one is not None]
    if _SCALED in node.metadata or name in _THROUGH:
        return len(inner) == 1 and mean(inner[0])
    if hasattr(node, "_saved_reduction"):
        return bool(node._saved_reduction == 1)  # 0 none, 1 mean, 2 sum: ATen/core/Reduction.h
    if name == "AddBackward0":  # a loss and, perhaps, a penalty with a weight of its own
        return not any("Div" in one.name() for one in inner) and any(mean(one) for one in inner)
    return bool(name == "MeanBackward0")


def enabled_autocast(tensor: Tensor) -> bool:
    """Is autocast on for the device of a tensor?"""
    kind = tensor.device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
