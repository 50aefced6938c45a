"""The calls that compute a loss, and writes to ``.data`` beside them."""

from __future__ import annotations

import ast

from ..events import Site
from ..finding import Cause
from ..source.source_search import mentions_grad, syntax_tree
from .syntax import FUNCTIONS, function_around, node_place


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


_NEVER_ZERO = ("clamp", "clamp_min", "clip", "len", "max")


def _called(node: ast.AST) -> str:
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div):
            safe = isinstance(node.right, ast.Constant) or _called(node.right) in _NEVER_ZERO
            return "" if safe else "division"
        return "**" if isinstance(node.op, ast.Pow) else ""
    if not isinstance(node, ast.Call):
        return ""
    return (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")).lower()


def kept_under_new_name(site: Site) -> bool:
    """Does a line give its result a name of its own that is used more than once: ``p = torch.sigmoid(x)``?"""
    function = function_around(site)
    nodes = list(ast.walk(function)) if function is not None else []
    for node in nodes:
        if isinstance(node, ast.Assign) and node.lineno == site[1] and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            uses = [one for one in nodes if isinstance(one, ast.Name) and one.id == name]
            inside = any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node.value))
            return not inside and sum(isinstance(one.ctx, ast.Load) for one in uses) > 1
    return False


def call_of_attribute(made: Cause, site: Site) -> Cause | None:
    """Return the call ``self.prob(x)`` in a line, where a module was made by ``self.prob = nn.Softmax(dim=1)``."""
    tree = syntax_tree(made.file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and node.lineno == made.line and isinstance(node.targets[0], ast.Attribute):
            found = calls_named(site[0], (node.targets[0].attr.lower(),), site[1])
            return found[0] if found else None
    return None


def data_write(site: Site) -> Cause | None:
    """Return a write to ``.data`` in the loop, or else the function, that a line is in, or in what that calls."""
    function = function_around(site)
    if function is None:
        return None
    loops = [one for one in ast.walk(function) if isinstance(one, (ast.For, ast.While))]
    around = [one for one in loops if one.lineno <= site[1] <= (one.end_lineno or 0)]
    if not around and isinstance(function, ast.Module):
        return None
    outermost = min(around, key=lambda one: one.lineno, default=function)
    tree = syntax_tree(site[0])
    called = {_called(node) for node in ast.walk(outermost)} - {""}
    helpers = (
        [one for one in ast.walk(tree) if isinstance(one, FUNCTIONS) and one.name.lower() in called] if tree else []
    )
    scopes = (outermost, *helpers)
    nodes = [node for scope in scopes for node in ast.walk(scope) if isinstance(node, (ast.expr, ast.stmt))]
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
