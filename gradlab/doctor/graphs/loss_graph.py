"""Looks at losses when backward begins: their numbers always, their graphs and expressions now and then."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from types import FrameType
from typing import Any

from torch import Tensor

from ..._frames import user_frame
from ..events import Backward, LossFlaw
from ..source.cuts import find_cuts, find_terms
from ..source.loss_edits import compared_with, same_elements
from ..source.syntax import cause_at
from . import autograd_graph
from .autograd_graph import operation
from .nan_origin import NanOrigin, find_nan_origin, spoilt_weights
from .op_trace import Op, OpTrace, ops_below

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
_LOGITS = dict.fromkeys(("Softmax", "Sigmoid"), "with-logits")
_ACTIVATED: dict[str, tuple[str, dict[str, str]]] = {
    "LogSoftmax": ("log_softmax", {"Softmax": "softmax", "Sigmoid": "sigmoid"}),
    "BinaryCrossEntropyWithLogits": ("binary_cross_entropy_with_logits", _LOGITS),
} | dict.fromkeys(("NllLoss", "NllLoss2D"), ("nll_loss", {"Softmax": "nll-loss"}))
"""What a node of a loss is called, and the kind of flaw that it is to be given the result of an activation."""


def find_flaws(node: Any, trace: OpTrace, root: Op) -> list[LossFlaw]:
    """Return what is suspicious in the graph of a loss, and in the calls that made it, each kind once."""
    found: dict[str, LossFlaw] = {}
    for one, op in _with_calls(node, trace):
        name = operation(one)
        if name in _ACTIVATED:
            flaw = _activated(one, op, trace)
        elif name in _ELEMENTWISE:
            flaw = _broadcasts(one, one, op)
        elif name in ("Mean", "Sum") and _shape(one) == () and (difference := _difference(one)) is not None:
            flaw = _broadcasts(one.next_functions[0][0], difference, trace.of(difference) or op)
        else:
            continue
        if flaw is not None and (flaw.kind not in found or not found[flaw.kind].seen):
            found[flaw.kind] = flaw
    for call in ops_below(root, _NEAR):
        if call.flaw and "kl-div" not in found:
            given = call.inputs[0]
            while given.name in _RESHAPING and given.inputs:
                given = given.inputs[0]
            activation = given.name if given.name in ("softmax", "sigmoid") else ""
            seen = f"kl_div is given {'the result of ' + activation if activation else 'numbers'} of 0 or above"
            words = {"activation": activation or "softmax", "method": given.method}
            found["kl-div"] = LossFlaw("kl-div", seen, call.path, given.path if activation else (), words=words)
    return list(found.values())


_RESHAPING = ("view", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "contiguous", "__getitem__")


def _with_calls(root: Any, trace: OpTrace) -> Iterator[tuple[Any, Op]]:
    """Yield the nodes near a loss, each with the call that made it, or that made what it was used for."""
    waiting, seen = [(root, trace.of(root) or Op(""))], {root}
    for node, op in waiting:
        yield node, op
        for inner, _ in node.next_functions:
            if inner is not None and inner not in seen and len(waiting) < _NEAR:
                seen.add(inner)
                waiting.append((inner, trace.of(inner) or op))


def compiled(node: Any) -> bool:
    """Return whether a part of the graph next to a loss is that of a compiled model, a single node."""
    return any(one.name().startswith("CompiledFunction") for one in autograd_graph.nodes(node, most=_NEAR))


def _through(node: Any) -> Any:
    """Return the node behind those that only reshape."""
    while node is not None and operation(node) in _RESHAPES and node.next_functions:
        node = node.next_functions[0][0]
    return node


def _activated(node: Any, op: Op, trace: OpTrace) -> LossFlaw | None:
    """Return the flaw of a loss that is given the result of an activation, whatever reshapes it."""
    called, kinds = _ACTIVATED[operation(node)]
    inner = _through(given := node.next_functions[0][0])
    if inner is None or (name := operation(inner)) not in kinds:
        return None
    if kinds[name] == "softmax" and inner is given and _dim(node) != _dim(inner):
        return None
    source = trace.of(inner) or Op("")
    seen = f"{called} is given the result of {name.lower()}, of shape {_shape(inner)}"
    words = {"activation": name.lower(), "method": source.method}
    return LossFlaw(kinds[name], seen, op.path, source.path, words=words)


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


def _broadcasts(node: Any, difference: Any, op: Op) -> LossFlaw | None:
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
    target, edit = shapes[-1] if len(shapes) == 2 else None, None
    if target is None:  # the one that needs no gradient is not in the graph
        if len(op.tensors) != 2:
            return None
        target, edit = compared_with(op, shapes[0], wide)
    first, few = f"a prediction of shape {shapes[0]}", math.prod(shapes[0])
    seen = f"{first} was" if target is None else f"{first} and a target of shape {target} were"
    seen += f" broadcast to {wide}: {math.prod(wide)} numbers, not {few}"
    seen = "" if target == () else seen
    return LossFlaw("broadcast", seen, op.path, edit=edit, words={"shape": str(shapes[0])})


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
# Passes of a call path that are looked at: a term may be added at the first, and then at each 2nd, 4th or 16th only.
_LOOKS = frozenset((1, 2, 3, *(2**power + 1 for power in range(2, 40, 2))))


class LossWatcher:
    """Fills in what an event tells of its loss."""

    def __init__(self, trace: OpTrace) -> None:
        self.trace = trace
        self.compiled = False
        """True if a loss is computed from a model whose graph is a single node."""
        self._passes: dict[int, int] = {}  # call path -> number of its passes
        self._origins: dict[int, NanOrigin] = {}  # call path -> what made its first NaN
        self._spoilt: set[int] = set()  # call paths that go on with weights that are not finite

    def look(self, backward: Backward, root: Tensor, frame: FrameType | None) -> None:
        """Look at a loss before its backward pass runs."""
        path, node = backward.call_path, root.grad_fn
        if len(self._passes) >= _MOST_CALL_PATHS:
            self._passes.clear()
            self._spoilt.clear()
        count = self._passes[path] = self._passes.get(path, 0) + 1
        op = self.trace.op(root) if (traced := self.trace.pass_begins(path)) else Op("")
        if count + 1 in _LOOKS:
            self.trace.ask(path)
        if traced:
            numbers, own = [one for _, one in self.trace.numbers], user_frame(frame)
            backward.cuts = find_cuts(op, numbers, own)[:_FEW]
            backward.terms = find_terms(op, numbers, own)
        if node is None:
            return
        backward.loss = loss = _loss_number(root)
        if count in _LOOKS or traced:
            backward.looked = True
            backward.flaws = tuple(find_flaws(node, self.trace, op))
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
                self.trace.ask(path)
        elif not traced:
            return
        culprit = origin.node(node) if traced else None
        call = next((op for one, op in _with_calls(node, self.trace) if one is culprit), Op(""))
        place = cause_at(call.lines[0]) if call.lines else None
        flaw = LossFlaw(f"nan-{origin.kind}", origin.words, edit=place)
        backward.flaws = (*backward.flaws, flaw)


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
