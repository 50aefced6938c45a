"""What the graph next to a loss gives away: a softmax too many, and shapes that broadcast."""

from __future__ import annotations

import math
from typing import Any

from ..events import NO_SITE, LossFlaw
from . import autograd_graph
from .autograd_graph import made_by

_NEAR = 80  # nodes from the loss that are looked at
_RESHAPES = (
    *("Alias", "Clone", "Index", "IndexSelect", "Permute", "ReshapeAlias", "Select", "Slice", "Squeeze", "T", "ToCopy"),
    *("Transpose", "UnsafeView", "Unsqueeze", "View"),
)
_JOINS = ("Stack", "Cat")
_ELEMENTWISE = ("MseLoss", "SmoothL1Loss", "HuberLoss")
_NLL = ("NllLoss", "NllLoss2D")


def find_flaws(node: Any) -> list[LossFlaw]:
    """Return what is suspicious in the graph of a loss, each kind once."""
    found: dict[str, LossFlaw] = {}
    for one in autograd_graph.nodes(node, most=_NEAR):
        name = operation(one)
        if name == "LogSoftmax":
            _log_softmax(one, found)
        elif name in _NLL:
            _probabilities(one, "nll-loss", found)
        elif name == "BinaryCrossEntropyWithLogits":
            _probabilities(one, "with-logits", found)
        elif name in _ELEMENTWISE:
            _broadcasts(one, name, found)
        elif name in ("Mean", "Sum") and one.next_functions[0][0] is not None and _shape(one) == ():
            _broadcasts(one.next_functions[0][0], operation(one.next_functions[0][0]), found)
    return list(found.values())


def operation(node: Any) -> str:
    """Return what a node is the backward of: "LogSoftmax" for LogSoftmaxBackward0."""
    name, back, _ = node.name().rpartition("Backward")
    return str(name) if back else str(node.name())


def compiled(node: Any) -> bool:
    """Is a part of the graph next to a loss that of a compiled model, a single node?"""
    return any(one.name().startswith("CompiledFunction") for one in autograd_graph.nodes(node, most=_NEAR))


def _flaw(kind: str, loss: Any, source: Any, seen: str) -> LossFlaw:
    lines = made_by(loss)
    return LossFlaw(kind, seen, lines[-1] if lines else NO_SITE, made_by(source), traced=bool(lines))


def _through(node: Any) -> tuple[Any, bool]:
    """Return the node behind those that only reshape, and whether there were any of these."""
    reshaped = False
    while node is not None and (operation(node) in _RESHAPES or operation(node) in _JOINS) and node.next_functions:
        node, reshaped = node.next_functions[0][0], True
    return node, reshaped


def _log_softmax(node: Any, found: dict[str, LossFlaw]) -> None:
    inner, reshaped = _through(node.next_functions[0][0])
    name = "" if inner is None else operation(inner)
    seen = f"log_softmax over {_shape(node)} is given the result of"
    if name == "Softmax" and (reshaped or _dim(node) == _dim(inner)):
        found.setdefault("softmax", _flaw("softmax", node, inner, f"{seen} softmax"))
    elif name == "Sigmoid":
        found.setdefault("sigmoid", _flaw("sigmoid", node, inner, f"{seen} sigmoid"))
    elif name == "LogSoftmax" and (reshaped or _dim(node) == _dim(inner)):
        found.setdefault("log-softmax", _flaw("log-softmax", node, inner, f"{seen} log_softmax"))
    elif name == "Log":
        before, _ = _through(inner.next_functions[0][0])
        if before is not None and operation(before) == "Softmax":
            found.setdefault("log-softmax", _flaw("log-softmax", node, inner, f"{seen} log(softmax)"))


def _probabilities(node: Any, kind: str, found: dict[str, LossFlaw]) -> None:
    inner, _ = _through(node.next_functions[0][0])
    if inner is None:
        return
    name = operation(inner)
    if name == "Softmax" or (name == "Sigmoid" and kind == "with-logits"):
        seen = f"{operation(node)} is given the result of {name.lower()}, of shape {_shape(inner)}"
        found.setdefault(f"{name.lower()}-{kind}", _flaw(f"{name.lower()}-{kind}", node, inner, seen))


def _broadcasts(node: Any, name: str, found: dict[str, LossFlaw]) -> None:
    """See whether (N, 1) and (N,) have become (N, N) in a loss element by element."""
    edges = node.next_functions
    if name in _ELEMENTWISE:
        pairs = [(one, _inputs(one)) for one, _ in edges if one is not None and operation(one) == "Expand"]
        if any(_unsqueezed(inner) for one, _ in pairs for inner, _ in one.next_functions):
            return  # pairs on purpose
        expanded, shapes = node, [(_shape(one), inputs[0]) for one, inputs in pairs if len(inputs) == 1]
    elif name in ("Pow", "Abs", "Mul"):
        difference = edges[0][0]
        if name == "Mul" and (len(edges) != 2 or edges[1][0] is not difference):
            return  # a square is d * d, and nothing else
        if difference is None or operation(difference) not in ("Sub", "Rsub"):
            return
        expanded, shapes = difference, [(_shape(difference), one) for one in _inputs(difference)]
        if any(_unsqueezed(one) for one, _ in difference.next_functions):
            return  # pairs on purpose
    else:
        return
    for wide, narrow in shapes:
        if len(wide) < 2 or not wide[0] == wide[1] > 1:
            continue
        flat, column = wide[1:], (wide[0], 1, *wide[2:])
        if narrow in (flat, column):
            other = flat if narrow == column else column
            if len(shapes) == 2 and {narrow, other} != {one for _, one in shapes}:
                return  # (N, 1) against (1, N): pairs on purpose
            many, few = math.prod(wide), math.prod(flat)
            seen = f"shapes {narrow} and {other} were broadcast to {wide}: {many} numbers, not {few}"
            found.setdefault("broadcast", _flaw("broadcast", node, expanded, seen))
            return


def _unsqueezed(node: Any) -> bool:
    return node is not None and operation(node) == "Unsqueeze"


def _inputs(node: Any) -> list[tuple[int, ...]]:
    """Return the shapes of what a node was computed from, as far as that needs a gradient; of Expand, its own."""
    inputs = [(one, at) for one, at in node.next_functions if one is not None]
    if operation(node) != "Expand":
        expands = [one for one, _ in inputs if operation(one) == "Expand"]
        if expands:  # l1_loss broadcasts before it subtracts
            return [shape for one in expands for shape in _inputs(one)]
    return [_shape(one, at) for one, at in inputs]


def _shape(node: Any, at: int = 0) -> tuple[int, ...]:
    """Return the shape of a result of a node."""
    if hasattr(node, "variable"):
        return tuple(node.variable.shape)
    known = getattr(node, "_input_metadata", None)
    return tuple(known[at].shape) if known and at < len(known) else ()


def _dim(node: Any) -> int:
    """Return the dimension of a softmax, counted from 0."""
    dim = int(node._saved_dim)
    dim = dim - 2**64 if dim >= 2**63 else dim  # -1 comes as the greatest whole number
    return dim % max(1, len(_shape(node)))
