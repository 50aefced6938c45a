"""Checks of the loss when a backward pass begins: of its value in every pass, of its graph and calls in some passes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

from torch import Tensor

from ..._frames import user_frame
from ..events import Backward, LossFlaw
from ..source.cuts import find_cuts, find_terms
from ..source.loss_edits import compared_with, same_elements
from ..source.syntax import cause_at
from .autograd_graph import nodes, operation
from .nan_origin import NanOrigin, find_nan_origin, has_nonfinite_leaves
from .op_trace import Op, OpTrace, ops_below

_NEAR = 80  # largest number of nodes or calls near the loss that are searched
_MOST_CALL_PATHS = 256
# Examined passes of each call path, by number. Some losses have a term in the first of every 2, 4 or 16 passes only.
_LOOKS = frozenset((1, 2, 3, *(2**power + 1 for power in range(2, 40, 2))))
_RESHAPES = (
    *("Alias", "Clone", "Index", "IndexSelect", "Permute", "ReshapeAlias", "Select", "Slice", "Squeeze", "T", "ToCopy"),
    *("Transpose", "UnsafeView", "Unsqueeze", "View", "Stack", "Cat"),
)
_RESHAPING = ("view", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "contiguous", "__getitem__")
_FEW = 12  # largest number of elementwise operations that are searched between a mean or sum and a difference
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
"""Operation of a loss -> the name of its function, and the kind of flaw for each activation before it."""


def find_flaws(node: Any, trace: OpTrace, root: Op) -> list[LossFlaw]:
    """Return the flaws in the graph of a loss and in the calls that computed it, at most one of each kind."""
    flaws: dict[str, LossFlaw] = {}
    for each, op in _with_calls(node, trace):
        name = operation(each)
        if name in _ACTIVATED:
            flaw = _activated(each, op, trace)
        elif name in _ELEMENTWISE:
            flaw = _broadcasts(each, each, op)
        elif name in ("Mean", "Sum") and _shape(each) == () and (difference := _difference(each)) is not None:
            flaw = _broadcasts(each.next_functions[0][0], difference, trace.of(difference) or op)
        else:
            continue
        if flaw is not None and (flaw.kind not in flaws or not flaws[flaw.kind].proof):
            flaws[flaw.kind] = flaw
    for call in ops_below(root, _NEAR):
        if call.flaw and "kl-div" not in flaws:
            source = call.inputs[0]
            while source.name in _RESHAPING and source.inputs:
                source = source.inputs[0]
            activation = source.name if source.name in ("softmax", "sigmoid") else ""
            proof = f"kl_div is given {'the result of ' + activation if activation else 'numbers'} of 0 or above"
            details = {"activation": activation or "softmax", "method": source.method}
            flaws["kl-div"] = LossFlaw("kl-div", proof, call.path, source.path if activation else (), fields=details)
    return list(flaws.values())


def _with_calls(root: Any, trace: OpTrace) -> Iterator[tuple[Any, Op]]:
    """Yield (node, op) for each node near a loss. The op is the call that made the node, or the nearest later call."""
    waiting, visited = [(root, trace.of(root) or Op(""))], {root}
    for node, op in waiting:
        yield node, op
        for inner, _ in node.next_functions:
            if inner is not None and inner not in visited and len(waiting) < _NEAR:
                visited.add(inner)
                waiting.append((inner, trace.of(inner) or op))


def _through(node: Any) -> Any:
    while node is not None and operation(node) in _RESHAPES and node.next_functions:
        node = node.next_functions[0][0]
    return node


def _activated(node: Any, op: Op, trace: OpTrace) -> LossFlaw | None:
    """Return the flaw of a loss that wrongly receives the (possibly reshaped) result of an activation, or None."""
    called, kinds = _ACTIVATED[operation(node)]
    inner = _through(argument := node.next_functions[0][0])
    if inner is None or (name := operation(inner)) not in kinds:
        return None
    if kinds[name] == "softmax" and inner is argument and _dim(node) != _dim(inner):
        return None
    source = trace.of(inner) or Op("")
    proof = f"{called} receives the result of {name.lower()}, of shape {_shape(inner)}"
    details = {"activation": name.lower(), "method": source.method}
    return LossFlaw(kinds[name], proof, op.path, source.path, fields=details)


def _difference(node: Any) -> Any:
    """Return the node of the broadcast difference d in a mean or sum of d ** 2, abs(d), log(cosh(d)) or the like.

    d is broadcast if no operand in the graph has the shape of d. Return None if there is no such d or more than one.
    """
    waiting, visited, differences = [node.next_functions[0][0]], set[Any](), set[Any]()
    while waiting and len(visited) < _FEW:
        inner = waiting.pop()
        if inner is None or inner in visited or operation(inner) not in _EACH:
            continue
        visited.add(inner)
        if operation(inner) in ("Sub", "Rsub") and not any(_shape(*side) == _shape(inner) for side in _sides(inner)):
            differences.add(inner)
        else:
            waiting += [following for following, _ in inner.next_functions]
    return differences.pop() if len(differences) == 1 else None


def _sides(node: Any) -> list[tuple[Any, int]]:
    """Return (node, output index) for each operand of a difference that has a graph, before l1_loss expanded it."""
    sides = [(side, index) for side, index in node.next_functions if side is not None]
    return [side.next_functions[0] if operation(side) == "Expand" else (side, index) for side, index in sides]


def _broadcasts(node: Any, difference: Any, op: Op) -> LossFlaw | None:
    """Return the flaw of a loss that compares all pairs of predictions and targets by mistake, or None."""
    inner = _sides(difference)
    of_graph = difference is not node  # False for a function such as mse_loss, whose node receives expanded operands
    wide = _shape(difference) if of_graph else _shape(*next(side for side in node.next_functions if side[0]))
    shapes = [_shape(*side) for side in inner]
    if any(operation(side) == "Unsqueeze" for side, _ in inner) or any(shape == wide for shape in shapes):
        return None  # the pairs are intended, or each prediction is compared with several numbers
    if len(shapes) == 1 and not _can_grow(shapes[0], wide):
        return None
    if len(shapes) == 2 and (len(shapes[0]) == len(shapes[1]) or not same_elements(*shapes)):
        return None
    if len({_through(side) for side, _ in inner}) < len(inner):
        return None  # all pairs of one tensor
    target, edit = shapes[-1] if len(shapes) == 2 else None, None
    if target is None:  # the target requires no gradient, so it is not in the graph
        if len(op.tensors) != 2:
            return None
        target, edit = compared_with(op, shapes[0], wide)
    first, few = f"a prediction of shape {shapes[0]}", math.prod(shapes[0])
    proof = f"{first} was" if target is None else f"{first} and a target of shape {target} were"
    proof += f" broadcast to {wide}: {math.prod(wide)} numbers, not {few}"
    proof = "" if target == () else proof
    return LossFlaw("broadcast", proof, op.path, edit=edit, fields={"shape": str(shapes[0])})


def _can_grow(side: tuple[int, ...], wide: tuple[int, ...]) -> bool:
    """Return whether ``side`` and a shape that equals it except for sizes of 1 can broadcast to a larger ``wide``."""
    padded = (1,) * (len(wide) - len(side)) + side
    choices = [(size, 1) if size == side_size else (size,) for size, side_size in zip(wide, padded, strict=False)]
    return math.prod(wide) > math.prod(side) and any(same_elements(axes, side) for axes in itertools.product(*choices))


def _shape(node: Any, index: int = 0) -> tuple[int, ...]:
    if hasattr(node, "variable"):
        return tuple(node.variable.shape)
    metadata = getattr(node, "_input_metadata", None)
    return tuple(metadata[index].shape) if metadata and index < len(metadata) else ()


def _dim(node: Any) -> int:
    dim = int(node._saved_dim)
    dim = dim - 2**64 if dim >= 2**63 else dim  # a negative dim is saved as an unsigned 64-bit integer
    return dim % max(1, len(_shape(node)))


class LossWatcher:
    """Fills in the fields of a Backward event that describe its loss."""

    def __init__(self, trace: OpTrace) -> None:
        self.trace = trace
        self.compiled = False
        self._passes: dict[int, int] = {}  # number of passes of each call path
        self._origins: dict[int, NanOrigin] = {}  # origin of the first NaN or infinite loss of each call path
        self._nonfinite: set[int] = set()  # call paths whose weights became NaN or infinite later

    def examine(self, backward: Backward, root: Tensor, frame: FrameType | None) -> None:
        """Examine the loss ``root`` before its backward pass runs, and store the results in ``backward``."""
        path, node = backward.call_path, root.grad_fn
        if len(self._passes) >= _MOST_CALL_PATHS:
            self._passes.clear()
            self._nonfinite.clear()
        count = self._passes[path] = self._passes.get(path, 0) + 1
        op = self.trace.op(root) if (traced := self.trace.pass_begins(path)) else Op("")
        if count + 1 in _LOOKS:
            self.trace.ask(path)
        if traced:
            numbers, user = [op for _, op in self.trace.numbers], user_frame(frame)
            backward.cuts = find_cuts(op, numbers, user)[:_FEW]
            backward.terms = find_terms(op, numbers, user)
        if node is None:
            return
        backward.loss = loss = _loss_number(root)
        if count in _LOOKS or traced:
            backward.looked = True
            backward.flaws = tuple(find_flaws(node, self.trace, op))
            names = (each.name() for each in nodes(node, most=_NEAR))
            self.compiled = self.compiled or any(name.startswith("CompiledFunction") for name in names)
        if type(loss) is float and not math.isfinite(loss):
            self._not_finite(backward, node, traced=traced)

    def _not_finite(self, backward: Backward, node: Any, *, traced: bool) -> None:
        """Add flaws for a NaN or infinite loss: its origin, with the line if ``traced``, and non-finite weights."""
        path = backward.call_path
        origin = self._origins.get(path)
        if origin is not None and path not in self._nonfinite and has_nonfinite_leaves(node):
            self._nonfinite.add(path)
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
        call = next((op for each, op in _with_calls(node, self.trace) if each is culprit), Op(""))
        cause = cause_at(call.lines[0]) if call.lines else None
        backward.flaws = (*backward.flaws, LossFlaw(f"nan-{origin.kind}", origin.text, edit=cause))


def _loss_number(loss: Tensor) -> Any:
    """Return the value of a loss (on a GPU, a tensor to be read later), or None if the loss is not a single float."""
    if type(loss) is not Tensor or loss.numel() != 1 or not loss.is_floating_point():
        return None
    with suppress(RuntimeError):  # a loss inside a transform of torch.func has no value
        if loss.is_cpu:
            value: Any = loss.tolist()  # unlike tolist(), item() would be visible to the learner's dispatch modes
            while isinstance(value, list):
                (value,) = value
            return value
        if loss.device.type != "meta" and loss.dim() == 0:
            return loss.detach()
    return None
