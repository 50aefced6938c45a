"""Lines that read, write or clear ``.grad``, and that write to ``.data``."""

from __future__ import annotations

import ast

from ..events import NO_SITE, Site
from ..finding import Cause
from .calls import called_name
from .syntax import FUNCTIONS, function_around, node_place, syntax_tree


def updates_by_hand(site: Site) -> Site:
    """Return the line that moves weights by their gradients in the file of another line, or that line itself."""
    tree = syntax_tree(site[0]) if site != NO_SITE else None
    for node in ast.walk(tree) if tree is not None else ():
        target: ast.AST | None = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
            target = node.func.value
        elif isinstance(node, ast.Assign):
            target = node.targets[0]
        if target is None or mentions_grad(target):
            continue
        if mentions_grad(node):
            return site[0], node.lineno  # type: ignore[attr-defined]  # all three kinds have a line
    return site


_MOVES = ("sub_", "add_", "copy_", "addcmul_", "addcdiv_")


def clears_by_hand(site: Site) -> Site:
    """Return the line that clears ``.grad`` itself in the file of another line, or that line if there is none."""
    tree = syntax_tree(site[0]) if site != NO_SITE else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None:
            target = node.targets[0]
            if isinstance(target, ast.Attribute) and target.attr == "grad":
                return site[0], node.lineno
        named = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "zero_"
        if named and mentions_grad(node):
            return site[0], node.lineno  # type: ignore[attr-defined]  # a call has a line
    return site


def reads_gradient_of_an_input(site: Site) -> bool:
    """Does the function of a line read the ``.grad`` of something that is no weight, as an attack does?"""
    around = function_around(site)
    if around is None:
        return False
    weights = {
        name.id
        for loop in ast.walk(around)
        if isinstance(loop, (ast.For, ast.comprehension)) and "param" in ast.unparse(loop.iter)
        for name in ast.walk(loop.target)
        if isinstance(name, ast.Name)
    }
    cleared = {
        node.func.value
        for node in ast.walk(around)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "zero_"
    } | {node.left for node in ast.walk(around) if isinstance(node, ast.Compare)}
    cleared |= {one.value for one in cleared if isinstance(one, ast.Attribute) and one.attr == "data"}
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "grad"
        and isinstance(node.ctx, ast.Load)
        and node not in cleared
        and not (isinstance(node.value, ast.Name) and node.value.id in weights | {"torch", "autograd"})
        and not (isinstance(node.value, ast.Attribute) and node.value.attr in ("weight", "bias", "autograd"))
        for node in ast.walk(around)
    )


def first_step_between(first: Site, second: Site) -> int:
    """Return the line between two others that calls SAM's first step, or something told not to clear; 0 if none."""
    tree = syntax_tree(first[0]) if first[0] == second[0] else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and first[1] <= node.lineno <= second[1]:
            keeps = any(one.arg == "zero_grad" and ast.unparse(one.value) == "False" for one in node.keywords)
            if keeps or ast.unparse(node.func).endswith("first_step"):
                return node.lineno
    return 0


def mentions_grad(node: ast.AST) -> bool:
    """Does an expression read or write ``.grad``?"""
    return any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in ast.walk(node))


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
    called = {called_name(node) for node in ast.walk(outermost)} - {""}
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
