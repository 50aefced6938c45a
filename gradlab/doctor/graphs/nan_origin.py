"""A search for the first operation in a graph whose result is NaN or infinite."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from torch import Tensor

from ... import _torch
from .autograd_graph import leaves, nodes, operation

_MOST_NODES = 4000
_PLACES = {"self": 0, "input": 0, "other": 1, "target": 1, "weight": 1, "mat1": 1, "mat2": 1}
"""Name of a saved tensor -> index of the input that it holds."""
_INFINITE_SLOPES = {"Sqrt": "sqrt", "Acos": "acos", "Asin": "asin", "Pow": "pow"}  # not norms, whose gradient at 0 is 0
_PLAIN = {"Div": "a division", "Mul": "a multiplication", "Sub": "a subtraction", "Add": "an addition"}


@dataclass(frozen=True)
class NanOrigin:
    """The origin of a NaN or infinite loss: an operation, the weights, the data, or an unknown origin."""

    text: str
    """A description of the operation, such as "torch.log of 0"; "" if it was not found."""
    kind: str = "unknown"
    """"weights" or "data" if these were not finite before, "operation" if an operation made the value, or "unknown"."""
    path: tuple[int, ...] = ()
    """The path from the loss to the operation's node, as indices in the ``next_functions`` of the nodes."""
    name: str = ""

    def node(self, root: Any) -> Any:
        """Return the node at ``path`` in the graph of ``root``, or None if it has another name or does not exist."""
        for edge in self.path:
            if root is None or edge >= len(root.next_functions):
                return None
            root = root.next_functions[edge][0]
        return root if root is not None and root.name() == self.name else None


def find_nan_origin(root: Any) -> NanOrigin:
    """Search a graph's saved tensors, in the order of the operations, for a NaN or infinity, and return its origin."""
    paths: dict[Any, tuple[int, ...]] = {root: ()}
    for node in nodes(root, most=_MOST_NODES):
        for edge, (inner, _) in enumerate(node.next_functions):
            if inner is not None and len(paths) < _MOST_NODES:
                paths.setdefault(inner, (*paths.get(node, ()), edge))
    with torch.no_grad(), _torch.disable_current_modes():
        if any(hasattr(node, "variable") and not _finite(node.variable) for node in paths):
            # name the operation of this graph whose gradient can be infinite, if there is exactly one
            steep = [node for node in paths if operation(node) in _INFINITE_SLOPES and _steep(node)]
            if len(steep) != 1:
                return NanOrigin("", "weights")
            phrase = _INFINITE_SLOPES[operation(steep[0])]
            return NanOrigin(phrase, "weights", paths[steep[0]], steep[0].name())
        ordered = [node for node in paths if hasattr(node, "_sequence_nr") and not hasattr(node, "variable")]
        for node in sorted(ordered, key=lambda each: int(each._sequence_nr())):
            if (origin := _made_here(node)) is not None:
                culprit, kind, phrase = origin
                return NanOrigin(phrase, kind, paths.get(culprit, ()), culprit.name())
    return NanOrigin("")


def has_nonfinite_leaves(root: Any) -> bool:
    """Return whether a graph has leaves that are NaN or infinite."""
    with torch.no_grad(), _torch.disable_current_modes():
        return any(not _finite(leaf) for leaf, _ in leaves(root))


def _steep(node: Any) -> bool:
    exponent = getattr(node, "_saved_exponent", 0.5)  # only pow saves an exponent; 0.5 stands for other operations
    return isinstance(exponent, (int, float)) and 0 < exponent < 1


def _made_here(node: Any) -> tuple[Any, str, str] | None:
    """Return (node, kind, description) of the origin if ``node`` made or received a non-finite value, else None."""
    name, saved = operation(node), _saved(node)
    if phrase := _impossible(name, saved):
        return node, "operation", phrase
    for key, value in saved.items():
        if not _floats(value) or not bool(value.isnan().any()):
            continue
        if key in ("result", "output"):
            return node, "operation", "softmax of a row of -inf" if "oftmax" in name else _plain(name)
        edge = _PLACES.get(key, -1) + (key == "mat2" and "mat1" in saved)
        if not 0 <= edge < len(node.next_functions):
            return None
        if (inner := node.next_functions[edge][0]) is not None:
            return inner, "operation", _plain(operation(inner))
        return node, "data", f"{'the targets' if key == 'target' else 'the data'} that {_plain(name)} is given"
    return None


def _plain(name: str) -> str:
    return _PLAIN.get(name, name[:1].lower() + name[1:])


def _impossible(name: str, saved: dict[str, Any]) -> str:
    """Return a phrase such as "torch.log of 0" if the inputs of an operation give no finite result, otherwise ""."""
    operand = saved.get("self")
    if name in ("Log", "Log2", "Log10") and isinstance(operand, Tensor) and bool((operand <= 0).any()):
        return f"torch.{name.lower()} of {'0' if bool((operand == 0).any()) else 'a negative number'}"
    if name == "Div" and _zero(saved.get("other")):
        return "a division by 0"
    if name == "Exp" and _floats(result := saved.get("result")) and bool(result.isinf().any()):
        return "torch.exp of a number that is too large"
    if name == "Pow" and isinstance(operand, Tensor) and isinstance(exponent := saved.get("exponent"), (int, float)):
        if exponent < 0 and _zero(operand):
            return f"0 to the power of {exponent:g}"
        if exponent != int(exponent) and bool((operand < 0).any()):
            return f"a negative number to the power of {exponent:g}"
    if name == "Mean" and saved.get("self_sym_numel") == 0:
        return "a mean over no elements"
    if name.startswith("NllLoss") and _zero(saved.get("total_weight")):
        return "cross_entropy where every target is ignored" if saved.get("reduction") == 1 else ""
    return ""


def _saved(node: Any) -> dict[str, Any]:
    """Return the values that a node has saved, by name, without tensors that hooks packed, as in checkpointing."""
    values: dict[str, Any] = {}
    for name in (key.removeprefix("_saved_") for key in dir(node) if key.startswith("_saved_")):
        raw = getattr(node, f"_raw_saved_{name}", None)
        with suppress(AttributeError, RuntimeError):  # a saved tensor was freed, or changed in place since then
            if raw is None:
                values[name] = getattr(node, f"_saved_{name}")
            elif not isinstance(raw, (list, tuple)) and raw.unpack_hook is None:
                values[name] = raw.data
    return values


def _floats(value: Any) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value.is_floating_point() and value.layout is torch.strided


def _finite(value: Any) -> bool:
    return not _floats(value) or bool(value.isfinite().all())


def _zero(value: Any) -> bool:
    return _floats(value) and bool((value == 0).any())
