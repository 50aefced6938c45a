"""What a loss compares a prediction with: the target's words in a line that ran, and its shape."""

from __future__ import annotations

import ast
from types import FrameType

import torch
from torch import Tensor

from ..events import Site
from ..finding import Cause, Edit
from ..frames import call_chain
from .frame_values import FrameValues
from .loss_edits import operand
from .syntax import function_around, node_place, nodes_at, own_nodes, reworded

Shape = tuple[int, ...]
_PAIRS = ("unsqueeze", "expand", "repeat", "T", "mT")


def same_elements(one: Shape, other: Shape) -> bool:
    """Have two shapes the same elements in the same order, but for dimensions of size 1?"""
    return [size for size in one if size != 1] == [size for size in other if size != 1]


def compared_with(
    lines: tuple[Site, ...], frame: FrameType | None, prediction: Shape, wide: Shape
) -> tuple[Shape | None, Edit | Cause | None]:
    """Return the shape of the target that broadcasts with a prediction, and the edit that gives it the same shape.

    lines: those that call the loss, the innermost last. The shape is None if it is not known, and () if the line shows
    that pairs are meant.
    """
    running = [(one, {line for *_, line in one.f_code.co_lines()}) for one in call_chain(frame)]
    for site in reversed(lines):
        sides = [side for node in nodes_at(site) for side in _sides(node)]
        for one, own_lines in running:
            if one.f_code.co_filename == site[0] and site[1] in own_lines:
                values = FrameValues(one)
                found = {
                    ast.unparse(side): (side, tuple(value.shape))
                    for side in sides
                    if isinstance(value := values.of(side), Tensor) and not value.requires_grad
                    if _broadcast(tuple(value.shape), prediction) == wide
                }
                if len(found) == 1:
                    ((side, shape),) = found.values()
                    pairs = len(shape) == len(prediction) or not same_elements(shape, prediction)
                    if _on_purpose(side, *_PAIRS) or (pairs and shape != wide):
                        return (), None
                    return shape, _edit(site, side, shape, prediction, wide, values)
        if any(_on_purpose(side, *_PAIRS, "view", "reshape") for side in sides):
            return (), None
    return None, None


def _sides(node: ast.AST) -> list[ast.expr]:
    """Return what a difference is made of, or what a call is given, if it is two or more."""
    if isinstance(node, ast.Call):
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        return given if len(given) > 1 else []
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) else []


def _on_purpose(side: ast.expr, *words: str) -> bool:
    """``y[:, None]``, ``y.unsqueeze(1)``, ``y.T``"""
    parts = [*ast.walk(side)]
    indices = [part for one in parts if isinstance(one, ast.Subscript) for part in ast.walk(one.slice)]
    new = any(isinstance(one, ast.Constant) and one.value is None for one in indices)
    return new or any(isinstance(one, ast.Attribute) and one.attr in words for one in parts)


def _broadcast(one: Shape, other: Shape) -> Shape | None:
    try:
        return tuple(torch.broadcast_shapes(one, other))
    except RuntimeError:
        return None


def _edit(
    site: Site, side: ast.expr, shape: Shape, prediction: Shape, wide: Shape, values: FrameValues
) -> Edit | Cause | None:
    place, words = node_place(site[0], side), operand(site[0], side)
    for dim in range(max(len(shape), len(prediction))):
        if (*shape[:dim], 1, *shape[dim:]) == prediction:
            return reworded(place, f"{words}.unsqueeze({dim})")
        if (*prediction[:dim], 1, *prediction[dim:]) == shape:
            return reworded(place, f"{words}.squeeze({dim})")
    return _grown_above(site, side, prediction, values) if shape == wide else place


def _grown_above(site: Site, side: ast.expr, prediction: Shape, values: FrameValues) -> Cause | None:
    """Return what the target was made of above, if it was broadcast there: a term has the prediction's elements."""
    made = [
        node.value
        for node in own_nodes(function_around(site))
        if isinstance(node, ast.Assign) and node.lineno < site[1] and ast.unparse(node.targets[0]) == ast.unparse(side)
    ]
    terms = [made[0]] if len(made) == 1 else []
    for one in terms:  # it grows
        terms += [one.left, one.right] if isinstance(one, ast.BinOp) else []
    grown = any(
        isinstance(value := values.of(one), Tensor) and value.dim() and same_elements(tuple(value.shape), prediction)
        for one in terms
    )
    return node_place(site[0], made[0]) if grown else None
