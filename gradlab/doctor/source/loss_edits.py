"""Edits of the operations that a loss is made of, in the lines that ran; and of the target it compares with."""

from __future__ import annotations

import ast
import re

import torch

from ..events import LossFlaw, Site
from ..finding import Cause, Edit
from ..graphs.op_trace import Op
from . import syntax
from .syntax import called, called_on, dotted, node_place, nodes_at, reworded, words_of

Shape = tuple[int, ...]
_PAIRS = ("unsqueeze", "expand", "repeat", "T", "mT")


def without_call(flaw: LossFlaw) -> Edit | Cause | None:
    """Return the edit that takes a softmax or the like out, or gives the loss what its result is made of."""
    site, activation = flaw.source[-1], flaw.words["activation"]
    instead = "log_softmax" if flaw.kind in ("nll-loss", "kl-div") else ""
    if instead and activation != "softmax":
        return None
    calls = [node for node in nodes_at(site) if isinstance(node, ast.Call)]
    own = [call for call in calls if called(call) == activation]
    if not own:
        return _module_out(site, calls, activation.capitalize()) if not instead else None
    if len(own) > 1:  # the one that is the loss's first argument
        own = [one for one in own for call in calls if call.args and call is not one and one in ast.walk(call.args[0])]
    if len(own) != 1:
        return None
    given = called_on(own[0]) if flaw.words["method"] else None
    if (given := given or next(iter(own[0].args), None)) is None:
        return None
    place, nodes = node_place(site[0], own[0]), list(syntax.own_nodes(syntax.function_around(site)))
    words = (
        re.sub(rf"\b{activation}\b", instead, words_of(place), count=1) if instead else syntax.operand(site[0], given)
    )
    made = next((one for one in nodes if isinstance(one, ast.Assign) and own[0] in ast.walk(one)), None)
    name = dotted(made.targets[0]) if made is not None else ""
    if name and name == words:  # x = softmax(x): the whole line goes
        return place
    named = [one for one in nodes if isinstance(one, (ast.Name, ast.Attribute)) and dotted(one) in (name, words)]
    uses = [one for one in named if name and dotted(one) == name and isinstance(one.ctx, ast.Load)]
    places = [node_place(site[0], one) for one in uses if (site[0], one.lineno) == flaw.loss[-1]]
    if len(uses) == len(places):  # nothing else uses its result
        return reworded(place, words)
    new = [one for one in named if isinstance(one.ctx, ast.Store) and dotted(one) == words and one.lineno > site[1]]
    if not places or made is None or words != dotted(given) or made.value is not own[0] or new:
        return places[0] if len(places) == 1 else None
    return syntax.all_reworded(dict.fromkeys(places, words))


def _module_out(site: Site, calls: list[ast.Call], kind: str) -> Edit | Cause | None:
    """The line calls a module by a name that was given once in its file: to a softmax, or to a model with one in it."""
    for call in calls:
        made = syntax.assigned(site[0], dotted(call.func))
        layers = [one for value in made for one in ast.walk(value) if isinstance(one, ast.Call) and called(one) == kind]
        if len(made) == 1 and len(layers) == 1:
            if made[0] is layers[0]:
                return reworded(node_place(site[0], call), syntax.operand(site[0], call.args[0])) if call.args else None
            place, package = node_place(site[0], layers[0]), dotted(layers[0].func).rpartition(".")[0]
            return reworded(place, f"{package}.Identity()") if package else place
    return None


def with_create_graph(file: str, call: ast.Call) -> Edit | Cause:
    """Return the edit that gives a call of ``torch.autograd.grad`` its ``create_graph=True``."""
    place, values = node_place(file, call), syntax.arguments(call)
    if old := [keyword.value for keyword in call.keywords if keyword.arg == "create_graph"]:
        return reworded(node_place(file, old[0]), "True")
    last = node_place(file, max(values, key=lambda value: (value.lineno, value.col_offset)))
    return reworded(last, f"{words_of(last)}, create_graph=True") if last.end_column else place


def same_elements(one: Shape, other: Shape) -> bool:
    """Return whether two shapes have the same elements in the same order, but for dimensions of size 1."""
    return [size for size in one if size != 1] == [size for size in other if size != 1]


def compared_with(op: Op, prediction: Shape, wide: Shape) -> tuple[Shape | None, Edit | Cause | None]:
    """Return the shape of what an op compares with a prediction, () for pairs that are meant, and the edit of it."""
    targets = [(at, one) for at, one in enumerate(op.tensors) if not one.graph]
    if len(targets) != 1:
        return None, None
    ((at, target),) = targets
    indexed = target.name == "__getitem__" and len(target.shape) > len(target.inputs[0].shape)  # y[:, None]
    try:
        together = tuple(torch.broadcast_shapes(target.shape, prediction))
    except RuntimeError:
        together = ()
    same_length = len(target.shape) == len(prediction) or not same_elements(target.shape, prediction)
    if target.name in _PAIRS or indexed or together != wide or (same_length and target.shape != wide):
        return (), None
    for site in op.lines:
        sides = [side for node in nodes_at(site) if len(side := _sides(node)) > at]
        if len(sides) == 1:
            return target.shape, _edit(site, sides[0][at], target.shape, prediction, wide)
    return target.shape, None


def _sides(node: ast.AST) -> list[ast.expr]:
    """Return what a difference is made of, or what a call is given, if it is two or more."""
    if isinstance(node, ast.Call):
        return given if len(given := syntax.arguments(node)) > 1 else []
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) else []


def _edit(site: Site, side: ast.expr, shape: Shape, prediction: Shape, wide: Shape) -> Edit | Cause | None:
    place, words = node_place(site[0], side), syntax.operand(site[0], side)
    for dim in range(max(len(shape), len(prediction))):
        if (*shape[:dim], 1, *shape[dim:]) == prediction:
            return reworded(place, f"{words}.unsqueeze({dim})")
        if (*prediction[:dim], 1, *prediction[dim:]) == shape:
            return reworded(place, f"{words}.squeeze({dim})")
    return None if shape == wide else place
