"""Looks at losses when backward begins: their numbers always, their graphs now and then."""

from __future__ import annotations

import itertools
import math
from types import FrameType
from typing import Any

from torch import Tensor

from ..events import Backward, LossFlaw
from ..source.loss_edits import compared_with, kept_in_range, same_elements
from . import autograd_graph
from .autograd_graph import OpTracer, made_by, operation
from .nan_origin import NanOrigin, find_nan_origin, spoilt_weights

_NEAR = 80  # nodes from the loss that are looked at
_RESHAPES = (
    *("Alias", "Clone", "Index", "IndexSelect", "Permute", "ReshapeAlias", "Select", "Slice", "Squeeze", "T", "ToCopy"),
    *("Transpose", "UnsafeView", "Unsqueeze", "View", "Stack", "Cat"),
)
_FEW = 12  # nodes from the mean or the sum to the difference
_EACH = (
    *("Pow", "Abs", "Mul", "Add", "Sub", "Rsub", "Div", "Sqrt", "Log", "Log1P", "Exp", "Tanh", "Softplus", "Neg"),
    *("Where", "Maximum", "Minimum", "Clamp"),
)
_ELEMENTWISE = ("MseLoss", "SmoothL1Loss", "HuberLoss")
_NLL = ("NllLoss", "NllLoss2D")
_LOSSES = {"BinaryCrossEntropyWithLogits": "binary_cross_entropy_with_logits"} | dict.fromkeys(_NLL, "nll_loss")


def find_flaws(node: Any, frame: FrameType | None) -> list[LossFlaw]:
    """Return what is suspicious in the graph of a loss, each kind once; ``frame`` is where backward begins."""
    found: dict[str, LossFlaw] = {}
    for one in autograd_graph.nodes(node, most=_NEAR):
        name = operation(one)
        if name == "LogSoftmax":
            flaw = _log_softmax(one)
        elif name in _NLL:
            flaw = _activated(one, "nll-loss", ("Softmax",))
        elif name == "BinaryCrossEntropyWithLogits":
            flaw = _activated(one, "with-logits", ("Softmax", "Sigmoid"))
        elif name in _ELEMENTWISE:
            flaw = _broadcasts(one, one, frame)
        elif name in ("Mean", "Sum") and _shape(one) == () and (difference := _difference(one)) is not None:
            flaw = _broadcasts(one.next_functions[0][0], difference, frame)
        else:
            continue
        if flaw is not None and (flaw.kind not in found or not found[flaw.kind].seen):
            found[flaw.kind] = flaw
    return list(found.values())


def compiled(node: Any) -> bool:
    """Return whether a part of the graph next to a loss is that of a compiled model, a single node."""
    return any(one.name().startswith("CompiledFunction") for one in autograd_graph.nodes(node, most=_NEAR))


def _through(node: Any) -> Any:
    """Return the node behind those that only reshape."""
    while node is not None and operation(node) in _RESHAPES and node.next_functions:
        node = node.next_functions[0][0]
    return node


def _log_softmax(node: Any) -> LossFlaw | None:
    inner = node.next_functions[0][0]
    if inner is not None and operation(inner) == "Softmax" and _dim(node) != _dim(inner):
        return None
    return _activated(node, "softmax", ("Softmax",)) or _activated(node, "sigmoid", ("Sigmoid",))


def _activated(node: Any, kind: str, activations: tuple[str, ...]) -> LossFlaw | None:
    """Return the flaw of a loss that is given the result of an activation, whatever reshapes it."""
    inner = _through(node.next_functions[0][0])
    if inner is None or (name := operation(inner)) not in activations:
        return None
    seen = f"{_LOSSES.get(operation(node), 'log_softmax')} is given the result of {name.lower()}, of shape "
    words = {"activation": name.lower()}
    return LossFlaw(kind, f"{seen}{_shape(inner)}", made_by(node), made_by(inner), words=words)


def _difference(node: Any) -> Any:
    """Return the node of d where a loss is the mean or sum of d ** 2, abs(d), log(cosh(d)) ..., d a difference.

    It is the only one, close to the loss, that is wider than what it is made of.
    """
    waiting, seen, found = [node.next_functions[0][0]], set[Any](), set[Any]()
    while waiting and len(seen) < _FEW:
        one = waiting.pop()
        if one is None or one in seen or operation(one) not in _EACH:
            continue
        seen.add(one)
        if operation(one) in ("Sub", "Rsub") and not any(_shape(*side) == _shape(one) for side in _sides(one)):
            found.add(one)
        else:
            waiting += [following for following, _ in one.next_functions]
    return found.pop() if len(found) == 1 else None


def _sides(node: Any) -> list[tuple[Any, int]]:
    """Return what is compared, as it was before l1_loss and others have expanded both sides."""
    sides = [(one, at) for one, at in node.next_functions if one is not None]
    return [one.next_functions[0] if operation(one) == "Expand" else (one, at) for one, at in sides]


def _broadcasts(node: Any, difference: Any, frame: FrameType | None) -> LossFlaw | None:
    """Return the flaw of a loss whose sides have the same elements, and were broadcast to pairs of them."""
    inner = _sides(difference)
    of_graph = difference is not node  # else what mse_loss compares; both sides come as they were expanded
    wide = _shape(difference) if of_graph else _shape(*next(side for side in node.next_functions if side[0]))
    shapes = [_shape(*one) for one in inner]
    if any(operation(one) == "Unsqueeze" for one, _ in inner) or any(shape == wide for shape in shapes):
        return None  # pairs on purpose, or numbers for each prediction
    if len(shapes) == 1 and not _can_grow(shapes[0], wide):
        return None
    if len(shapes) == 2 and (len(shapes[0]) == len(shapes[1]) or not same_elements(*shapes)):
        return None
    if len({_through(one) for one, _ in inner}) < len(inner):
        return None  # all pairs of one tensor
    lines, target, edit = made_by(difference), shapes[-1] if len(shapes) == 2 else None, None
    if target is None:
        target, edit = compared_with(lines, frame, shapes[0], wide)
    first, few = f"a prediction of shape {shapes[0]}", math.prod(shapes[0])
    seen = f"{first} was" if target is None else f"{first} and a target of shape {target} were"
    seen += f" broadcast to {wide}: {math.prod(wide)} numbers, not {few}"
    seen = "" if target == () else seen
    return LossFlaw("broadcast", seen, lines, edit=edit, words={"shape": str(shapes[0])})


def _can_grow(side: tuple[int, ...], wide: tuple[int, ...]) -> bool:
    """Return whether a shape with the same elements, broadcast with this side, gives the wide one."""
    padded = (1,) * (len(wide) - len(side)) + side
    choices = [(size, 1) if size == own else (size,) for size, own in zip(wide, padded, strict=False)]
    return math.prod(wide) > math.prod(side) and any(same_elements(one, side) for one in itertools.product(*choices))


def _shape(node: Any, at: int = 0) -> tuple[int, ...]:
    if hasattr(node, "variable"):
        return tuple(node.variable.shape)
    known = getattr(node, "_input_metadata", None)
    return tuple(known[at].shape) if known and at < len(known) else ()


def _dim(node: Any) -> int:
    dim = int(node._saved_dim)
    dim = dim - 2**64 if dim >= 2**63 else dim  # -1 comes as the greatest whole number
    return dim % max(1, len(_shape(node)))


_MOST_CALL_PATHS = 256
# Passes of a call path that are looked at: a term may be added at each 2nd, 4th or 16th only.
_LOOKS = frozenset((1, 2, 3, *(2**power + 1 for power in range(2, 40, 2))))


class LossWatcher:
    """Fills in what an event tells of its loss."""

    def __init__(self) -> None:
        self.tracer = OpTracer()
        self.compiled = False
        """True if a loss is computed from a model whose graph is a single node."""
        self._passes: dict[int, int] = {}  # call path -> number of its passes
        self._origins: dict[int, NanOrigin] = {}  # call path -> what made its first NaN
        self._traced: set[int] = set()  # call paths whose flaws have their lines
        self._spoilt: set[int] = set()  # call paths that go on with weights that are not finite

    def look(self, backward: Backward, root: Tensor, node: Any, frame: FrameType | None) -> None:
        """Look at a loss before its backward pass runs."""
        path = backward.call_path
        traced = self.tracer.pass_begins(path)
        if len(self._passes) >= _MOST_CALL_PATHS:
            self._passes.clear()
            self._traced.clear()
            self._spoilt.clear()
        count = self._passes[path] = self._passes.get(path, 0) + 1
        backward.loss = loss = _loss_number(root)
        if count in _LOOKS or traced:
            flaws = find_flaws(node, frame)
            if flaws and traced:
                self._traced.add(path)
            elif flaws and path not in self._traced:
                self.tracer.ask(path)
            backward.flaws = tuple(flaws)
            self.compiled = self.compiled or compiled(node)
        if type(loss) is float and not math.isfinite(loss):
            self._not_finite(backward, node, traced=traced)

    def _not_finite(self, backward: Backward, node: Any, *, traced: bool) -> None:
        """Find the operation in the first such graph, and its line in the next one."""
        path = backward.call_path
        origin = self._origins.get(path)
        if origin is not None and path not in self._spoilt and spoilt_weights(node):
            self._spoilt.add(path)
            backward.flaws = (*backward.flaws, LossFlaw("nan-spoilt"))
        if origin is None:
            if len(self._origins) >= _MOST_CALL_PATHS:
                return
            origin = self._origins[path] = find_nan_origin(node)
            if origin.path:
                self.tracer.ask(path)
        elif not traced:
            return
        culprit = origin.node(node) if traced else None
        lines = made_by(culprit) if culprit is not None else ()
        edit = kept_in_range(lines[-1], origin.words) if lines else None
        backward.flaws = (*backward.flaws, LossFlaw(f"nan-{origin.kind}", origin.words, edit=edit))


def _loss_number(loss: Tensor) -> Any:
    """Return the number that a loss is; on a GPU a copy that is read later, since nothing is to wait for it."""
    if type(loss) is not Tensor or loss.numel() != 1 or not loss.is_floating_point():
        return None
    try:
        if loss.is_cpu:
            value: Any = loss.tolist()  # item() would go through the dispatcher, past the learner's own modes
            while isinstance(value, list):
                (value,) = value
            return value
        if loss.device.type != "meta" and loss.dim() == 0:
            return loss.detach()
    except RuntimeError:  # inside a transform of torch.func it has no number
        pass
    return None
