"""The calls that compute a loss, and writes to ``.data`` beside them."""

from __future__ import annotations

import ast

from ..events import Site
from ..finding import Cause
from ..source_search import mentions_grad, syntax_tree
from .syntax import function_around, node_place


def calls_named(file: str, words: tuple[str, ...], line: int = 0) -> list[Cause]:
    """Return the calls, in a file or in one line of it, whose name has one of these words in it."""
    tree, found = syntax_tree(file), []
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, (ast.Call, ast.BinOp)) or line not in (0, node.lineno):
            continue
        if any(word in _called(node) for word in words):
            found.append(node_place(file, node))
    return found


def loss_call(backward: Site, words: tuple[str, ...]) -> Site:
    """Return the line above a ``backward()``, in its function, that calls a loss; its own line if none does."""
    function = function_around(backward)
    nodes = [one for one in ast.walk(function) if isinstance(one, (ast.Call, ast.BinOp))] if function else []
    above = [one for one in nodes if one.lineno <= backward[1] and any(word in _called(one) for word in words)]
    return backward[0], max((one.lineno for one in above), default=backward[1])


def _called(node: ast.AST) -> str:
    if isinstance(node, ast.BinOp):
        return "pow" if isinstance(node.op, ast.Pow) else ""
    if not isinstance(node, ast.Call):
        return ""
    return (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")).lower()


def data_write(site: Site) -> Cause | None:
    """Return a write to ``.data`` in the loop, or else the function, that a line is in; the least usual one."""
    function = function_around(site)
    if function is None:
        return None
    loops = [one for one in ast.walk(function) if isinstance(one, (ast.For, ast.While))]
    around = [one for one in loops if one.lineno <= site[1] <= (one.end_lineno or 0)]
    if not around and isinstance(function, ast.Module):
        return None
    outermost = min(around, key=lambda one: one.lineno, default=function)
    nodes = [node for node in ast.walk(outermost) if isinstance(node, (ast.expr, ast.stmt))]
    found = [(usual, node) for node in nodes if (usual := _writes_data(node)) is not None]
    return node_place(site[0], min(found, key=lambda one: (one[0], one[1].lineno))[1]) if found else None


def _writes_data(node: ast.expr | ast.stmt) -> int | None:
    """Return how usual a write to ``.data`` is: 0 not at all, 1 an update by hand, 2 a clamp; None if it is none."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        target: ast.AST = node.func.value
        usual = 2 if node.func.attr.startswith("clamp") else 1 if node.func.attr == "copy_" else 0
    elif isinstance(node, (ast.Assign, ast.AugAssign)):
        target, usual = node.targets[0] if isinstance(node, ast.Assign) else node.target, 0
    else:
        return None
    while isinstance(target, ast.Subscript) or (
        isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute)
    ):
        target = target.value if isinstance(target, ast.Subscript) else target.func.value  # type: ignore[attr-defined]
    if not isinstance(target, ast.Attribute) or target.attr != "data" or mentions_grad(target):
        return None
    return max(usual, 1) if mentions_grad(node) else usual
