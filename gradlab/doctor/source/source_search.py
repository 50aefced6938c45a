"""Reading the learner's source around a line."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache

from ..._process import parse_python
from ..events import NO_SITE, Site


def source_line(site: Site) -> str:
    """Return a line of the learner's source, "" if it can't be read."""
    linecache.checkcache(site[0])  # it may have been edited since it was read last
    return linecache.getline(*site)


def syntax_tree(file: str) -> ast.Module | None:
    """Return a file as it is now, parsed; None if that is not possible."""
    linecache.checkcache(file)
    return _parsed("".join(linecache.getlines(file)))


@lru_cache(maxsize=64)
def _parsed(source: str) -> ast.Module | None:
    try:
        return parse_python(source)
    except (SyntaxError, ValueError):
        return None


def adds_to(file: str, name: str, line: int) -> int:
    """Return a line that adds to a variable or attribute of this name, 0 if there is none.

    It is looked for in the function that ``line`` is in, and then in the whole file.
    """
    tree = syntax_tree(file)
    if tree is None:
        return 0
    return _adds_in(_innermost_function(tree, line), name) or _adds_in(tree, name)


def _adds_in(tree: ast.AST, name: str) -> int:
    for node in ast.walk(tree):
        target: ast.AST | None = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
            target = node.func.value
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            # total = total + loss, and losses[i] = loss
            again = any(_named(one, name) for one in ast.walk(node.value))
            target = node.targets[0] if again or isinstance(node.targets[0], ast.Subscript) else None
        if target is not None and _named(target, name):
            return int(node.lineno)  # type: ignore[attr-defined]  # all three kinds have a line
    return 0


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ADDS = ("append", "appendleft", "add", "extend", "insert", "setdefault", "update")


def _named(node: ast.AST, name: str) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)


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


def reads_gradient_of_an_input(site: Site) -> bool:
    """Does the function of a line read the ``.grad`` of something that is no weight, as an attack does?"""
    tree = syntax_tree(site[0]) if site != NO_SITE else None
    if tree is None:
        return False
    around = _innermost_function(tree, site[1])
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


def calls_in_loop(site: Site, method: str) -> list[int]:
    """Return the lines that call a method of this name in the outermost loop around a line, or in its function."""
    tree = syntax_tree(site[0]) if site != NO_SITE else None
    if tree is None:
        return []
    around: ast.AST = _innermost_function(tree, site[1])
    loops = [
        one
        for one in ast.walk(around)
        if isinstance(one, (ast.For, ast.While)) and one.lineno <= site[1] <= (one.end_lineno or 0)
    ]
    around = min(loops, key=lambda one: one.lineno, default=around)
    return sorted(
        node.lineno
        for node in ast.walk(around)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
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


def _innermost_function(tree: ast.AST, line: int) -> ast.AST:
    around = [
        one for one in ast.walk(tree) if isinstance(one, _FUNCTIONS) and one.lineno <= line <= (one.end_lineno or 0)
    ]
    return max(around, key=lambda one: one.lineno, default=tree)


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


_MOVES = ("sub_", "add_", "copy_", "addcmul_", "addcdiv_")


def mentions_grad(node: ast.AST) -> bool:
    """Does an expression read or write ``.grad``?"""
    return any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in ast.walk(node))
