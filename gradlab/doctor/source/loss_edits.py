"""Edits that correct a loss: they remove or replace its activation, set ``create_graph``, or reshape its target."""

from __future__ import annotations

import ast
import re

import torch

from ..events import LossFlaw, Site
from ..finding import Cause, Edit
from ..graphs.op_trace import Op
from . import syntax
from .syntax import called, called_on, dotted, node_place, nodes_at, reworded, text_of

Shape = tuple[int, ...]
_PAIRS = ("unsqueeze", "expand", "repeat", "T", "mT")


def without_call(flaw: LossFlaw) -> Edit | Cause | None:
    """Return the edit that removes the activation before a loss, or replaces it with log_softmax.

    Return only a location if the edit is not one replacement in a line, and None if the activation is not found.
    """
    site, activation = flaw.source[-1], flaw.fields["activation"]
    instead = "log_softmax" if flaw.kind in ("nll-loss", "kl-div") else ""
    if instead and activation != "softmax":
        return None
    calls = [node for node in nodes_at(site) if isinstance(node, ast.Call)]
    activations = [call for call in calls if called(call) == activation]
    if not activations:
        return _module_out(site, calls, activation.capitalize()) if not instead else None
    if len(activations) > 1:  # keep only those in the first argument of a call
        activations = [x for x in activations for call in calls if call.args and x in ast.walk(call.args[0])]
    if len(activations) != 1:
        return None
    argument = called_on(activations[0]) if flaw.fields["method"] else None
    if (argument := argument or next(iter(activations[0].args), None)) is None:
        return None
    cause, nodes = node_place(site[0], activations[0]), list(syntax.own_nodes(syntax.function_around(site)))
    text = text_of(cause) if instead else syntax.operand(site[0], argument)
    text = re.sub(rf"\b{activation}\b", instead, text, count=1) if instead else text
    assign = next((x for x in nodes if isinstance(x, ast.Assign) and activations[0] in ast.walk(x)), None)
    name = dotted(assign.targets[0]) if assign is not None else ""
    if name and name == text:  # x = softmax(x): remove the whole line
        return cause
    named = [node for node in nodes if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) in (name, text)]
    uses = [node for node in named if name and dotted(node) == name and isinstance(node.ctx, ast.Load)]
    causes = [node_place(site[0], node) for node in uses if (site[0], node.lineno) == flaw.loss[-1]]
    if len(uses) == len(causes):  # nothing else uses the activation's result
        return reworded(cause, text)
    new = [x for x in named if isinstance(x.ctx, ast.Store) and dotted(x) == text and x.lineno > site[1]]
    if not causes or assign is None or text != dotted(argument) or assign.value is not activations[0] or new:
        return causes[0] if len(causes) == 1 else None
    return syntax.all_reworded(dict.fromkeys(causes, text))


def _module_out(site: Site, calls: list[ast.Call], kind: str) -> Edit | Cause | None:
    """Return the edit that removes a call to a ``kind`` module or replaces the layer with an Identity, or None."""
    for call in calls:
        modules = syntax.assigned(site[0], dotted(call.func))
        parts = [part for value in modules for part in ast.walk(value)]
        layers = [part for part in parts if isinstance(part, ast.Call) and called(part) == kind]
        if len(modules) == 1 and len(layers) == 1:
            if modules[0] is layers[0]:
                return reworded(node_place(site[0], call), syntax.operand(site[0], call.args[0])) if call.args else None
            cause, package = node_place(site[0], layers[0]), dotted(layers[0].func).rpartition(".")[0]
            return reworded(cause, f"{package}.Identity()") if package else cause
    return None


def with_create_graph(file: str, call: ast.Call) -> Edit | Cause:
    """Return the edit that adds ``create_graph=True`` to a call to ``torch.autograd.grad``, or the call's location."""
    cause, values = node_place(file, call), syntax.arguments(call)
    if old := [keyword.value for keyword in call.keywords if keyword.arg == "create_graph"]:
        return reworded(node_place(file, old[0]), "True")
    last = node_place(file, max(values, key=lambda value: (value.lineno, value.col_offset)))
    return reworded(last, f"{text_of(last)}, create_graph=True") if last.end_column else cause


def same_elements(shape: Shape, other: Shape) -> bool:
    """Return whether two shapes are equal apart from dimensions of size 1."""
    return [size for size in shape if size != 1] == [size for size in other if size != 1]


def compared_with(op: Op, prediction: Shape, wide: Shape) -> tuple[Shape | None, Edit | Cause | None]:
    """Return the shape of a target (() for intended pairs, None if unknown), and its edit, its location or None."""
    targets = [(index, tensor) for index, tensor in enumerate(op.tensors) if not tensor.graph]
    if len(targets) != 1:
        return None, None
    ((index, target),) = targets
    indexed = target.name == "__getitem__" and len(target.shape) > len(target.inputs[0].shape)  # y[:, None]
    try:
        together = tuple(torch.broadcast_shapes(target.shape, prediction))
    except RuntimeError:
        together = ()
    same_length = len(target.shape) == len(prediction) or not same_elements(target.shape, prediction)
    if target.name in _PAIRS or indexed or together != wide or (same_length and target.shape != wide):
        return (), None
    for site in op.lines:
        sides = [side for node in nodes_at(site) if len(side := _sides(node)) > index]
        if len(sides) == 1:
            return target.shape, _edit(site, sides[0][index], target.shape, prediction, wide)
    return target.shape, None


def _sides(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        return arguments if len(arguments := syntax.arguments(node)) > 1 else []
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) else []


def _edit(site: Site, side: ast.expr, shape: Shape, prediction: Shape, wide: Shape) -> Edit | Cause | None:
    cause, text = node_place(site[0], side), syntax.operand(site[0], side)
    for dim in range(max(len(shape), len(prediction))):
        if (*shape[:dim], 1, *shape[dim:]) == prediction:
            return reworded(cause, f"{text}.unsqueeze({dim})")
        if (*prediction[:dim], 1, *prediction[dim:]) == shape:
            return reworded(cause, f"{text}.squeeze({dim})")
    return None if shape == wide else cause
