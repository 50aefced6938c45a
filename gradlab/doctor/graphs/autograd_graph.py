"""What can be read off autograd's graph when a backward pass begins."""

from __future__ import annotations

import re
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from ... import _torch
from ..._frames import Owner, code_owner
from ..events import Site

_MOST_NODES = 20_000
_MOST_ROOTS = 512
_MOST_OLD = 200  # nodes
LOOK_EVERY = 4  # backward passes between two looks at what is alive
_SCALED, _ROOT = "gradlab.scaled", "gradlab.root"
_SUMS, _WEIGHED = ("AddBackward0", "SubBackward0"), ("MulBackward0", "NegBackward0")
_THROUGH = ("ViewBackward0", "ReshapeAliasBackward0", "SqueezeBackward0", "UnsqueezeBackward0", "ToCopyBackward0")


class Token:
    """Lives as long as the node of the graph that carries it; ``born`` counts backward passes."""

    __slots__ = ("__weakref__", "born")
    born: int


class Roots:
    """Losses, or outputs of models: how many of them are alive although their time is long over."""

    def __init__(self) -> None:
        self._tokens: list[weakref.ref[Token]] = []

    def alive(self, now: int) -> int:
        """Return how many are alive that were made before the last two backward passes, of which ``now`` is one."""
        tokens = [(reference, token) for reference in self._tokens if (token := reference()) is not None]
        self._tokens = [reference for reference, _ in tokens[-_MOST_ROOTS:]]
        return sum(token.born < now - 2 for _, token in tokens)

    def add(self, node: Any, now: int) -> None:
        """Note a node."""
        if len(self._tokens) >= 2 * _MOST_ROOTS:
            self.alive(now)
        node.metadata[_ROOT] = token = Token()
        token.born = now
        self._tokens.append(weakref.ref(token))


def old_batches(root: Any, now: int) -> set[int]:
    """Return when the losses and outputs were made that a graph reaches near its root, from before the last two passes.

    Each time is a number of backward passes. The outputs that a loss was made of do not count beside it.
    """

    def is_old(node: Any) -> bool:
        token = node.metadata.get(_ROOT)
        return token is not None and token.born < now - 2

    near = nodes(root, most=_MOST_OLD, ends=is_old)
    return {node.metadata[_ROOT].born for node in near if is_old(node)}


def mark_scaled(tensor: Tensor) -> None:
    """Note that a loss comes from ``scaler.scale``."""
    if tensor.grad_fn is not None:
        metadata: Any = tensor.grad_fn.metadata  # a property, which its stub calls a method
        metadata[_SCALED] = True


def scaled(node: Any) -> bool:
    """Return whether a loss, or what it is made of at its end, is a scaled one."""
    return any(_SCALED in one.metadata for one in nodes(node, most=12))


def nodes(*roots: Any, most: int = _MOST_NODES, ends: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """Yield the nodes of a graph from its roots on, breadth first, ``most`` at the most; None is no root.

    Those behind a node that ``ends(node)`` are left out.
    """
    waiting = deque(root for root in roots if root is not None)
    seen: set[Any] = set()
    while waiting and len(seen) < most:
        node = waiting.popleft()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if ends is None or not ends(node):
            waiting.extend(inner(node))


def inner(node: Any) -> list[Any]:
    """Return the nodes that a node goes back to."""
    return [one for one, _ in node.next_functions if one is not None]


def operation(node: Any) -> str:
    """Return what a node is the backward of: "LogSoftmax" for LogSoftmaxBackward0."""
    name, back, _ = node.name().rpartition("Backward")
    return str(name) if back else str(node.name())


def leaves(node: Any) -> list[tuple[Tensor, int]]:
    """Return the leaves of a graph with their distance from the root, the nearest first."""
    found, level, distance = [], [node] if node is not None else [], 0
    seen: set[Any] = set()
    while level and len(seen) < _MOST_NODES:
        seen.update(level)
        found += [(one.variable, distance) for one in level if one.name() == _torch.ACCUMULATE_GRAD]
        after = dict.fromkeys(following for one in level for following in inner(one))
        level = [one for one in after if one not in seen]
        distance += 1
    return found


def older(node: Any, number: int) -> bool:
    """Return whether a graph has nodes that were made before autograd's counter stood at ``number``."""
    return any(one._sequence_nr() < number for one in nodes(node) if hasattr(one, "_sequence_nr"))  # leaves have none


def mean(node: Any) -> bool:
    """Return whether a loss is a mean over its batch that nothing divides, weighs or multiplies afterwards."""
    if (reduction := getattr(node, "_saved_reduction", None)) is not None:
        return bool(reduction == 1)  # 0 none, 1 mean, 2 sum: ATen/core/Reduction.h
    name, parts = node.name(), inner(node)
    if _SCALED in node.metadata or name in _THROUGH:
        return len(parts) == 1 and mean(parts[0])
    if name in _SUMS:  # a loss and, perhaps, others with weights of their own; a divided mean tells that all are
        return _smoothed(parts) or (any(map(mean, parts)) and not any(map(_divided, parts)))
    return bool(name == "MeanBackward0")


def _smoothed(terms: list[Any]) -> bool:
    """Recognise cross_entropy with label_smoothing: its weights are C++ numbers, which "MulBackward1" tells."""
    parts = [term.next_functions[0][0] for term in terms if term.name() == "MulBackward1"]
    return len(parts) == 2 and any(part and part.name() == "NllLossBackward0" and mean(part) for part in parts)


def _divided(node: Any) -> bool:
    """Return whether a term is divided that is not the sum over a batch, which division makes a mean."""
    if node.name() in (*_SUMS, *_WEIGHED):
        return any(map(_divided, inner(node)))
    return node.name() == "DivBackward0" and not any(map(_summed, inner(node)))


def _summed(node: Any) -> bool:
    if node.name() in (*_THROUGH, *_WEIGHED) and len(parts := inner(node)) == 1:
        return _summed(parts[0])
    return bool(getattr(node, "_saved_reduction", None) == 2 or node.name() == "SumBackward0")


_FRAME = re.compile(r'\s*File "(.+?)", line (\d+)')
_TRACEBACK = "traceback_"
_MOST_PASSES = 16  # backward passes of other lines before the wait ends
_MOST_TRIES = 3


class OpTracer:
    """Has autograd note the lines that make each node, from one backward pass to the next of the same call path."""

    def __init__(self) -> None:
        self._waiting: dict[int, int] = {}  # call path -> passes until the wait ends
        self._tries: dict[int, int] = {}
        self._on = False

    def ask(self, call_path: int) -> None:
        """Record the update that leads to the next backward pass of this call path."""
        if self._tries.setdefault(call_path, 0) < _MOST_TRIES:
            self._tries[call_path] += 1
            self._waiting[call_path] = _MOST_PASSES

    def pass_begins(self, call_path: int) -> bool:
        """Stop recording while a backward pass runs; return whether this is one that was asked for."""
        if not self._waiting:
            return False
        was_on = self._on
        self.remove()
        if call_path in self._waiting:
            if was_on:
                del self._waiting[call_path]
            return was_on
        self._waiting = {path: left - 1 for path, left in self._waiting.items() if left > 1}
        return False

    def pass_ended(self) -> None:
        """Record again, if a call path waits for it."""
        if self._waiting and not torch.is_anomaly_enabled():
            torch.autograd.set_detect_anomaly(True, check_nan=False)
            self._on = True

    def remove(self) -> None:
        """Switch the record off, if it was this object that switched it on.

        With a check of NaN, it is the learner's own by now, inside ``detect_anomaly()``: it stays, and is switched off
        at the next call, after that block has put back what it found.
        """
        if self._on and not (torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()):
            torch.autograd.set_detect_anomaly(False)
            self._on = False


def made_by(node: Any) -> tuple[Site, ...]:
    """Return the learner's lines that made a node, caller by caller; empty if they were not recorded."""
    matches = [match for frame in node.metadata.get(_TRACEBACK, ()) if (match := _FRAME.match(frame))]
    return tuple((match[1], int(match[2])) for match in matches if code_owner(match[1]) is Owner.USER)
