"""Calls: those that never happen, that are missing, that compute a loss, and that stand in a loop."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence

from ..events import Site
from ..finding import Cause
from .syntax import (
    FUNCTIONS,
    function_around,
    loop_around,
    method_calls,
    node_place,
    only,
    own_nodes,
    statements_around,
    syntax_tree,
)


def without_brackets(files: Iterable[str], method: str) -> Cause | None:
    """Return the place of ``optimizer.step`` as a statement of its own: it does nothing."""
    return only(
        node_place(file, node.value)
        for file in set(files)
        if (tree := syntax_tree(file)) is not None
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr == method
    )


def never_reached(files: Iterable[str], method: str, reached: Collection[Site]) -> Cause | None:
    """Return the ``if`` around the only call of a method that no event has come from."""
    found = []
    for file in set(files):
        tree = syntax_tree(file)
        for call in method_calls(tree, method) if tree is not None else ():
            if (file, call.lineno) not in reached:
                ifs = statements_around((file, call.lineno), ast.If)
                found.append(node_place(file, ifs[0].test) if ifs else None)  # type: ignore[attr-defined]  # an If
    return found[0] if len(found) == 1 else None


def condition_around(path: Iterable[Site]) -> Cause | None:
    """Return the test of the ``if`` that a line, or else the call that leads to it, depends on."""
    for site in path:
        for one in statements_around(site, ast.If):
            if isinstance(one, ast.If) and any(isinstance(part, ast.Compare) for part in ast.walk(one.test)):
                return node_place(site[0], one.test)
    return None


def end_of_function(site: Site) -> Cause | None:
    """Return the last statement of the function that a line is in; None in a file's own code."""
    scope = function_around(site)
    return node_place(site[0], scope.body[-1]) if isinstance(scope, FUNCTIONS) else None


def first_in_loop(site: Site) -> Cause | None:
    """Return the first statement of the innermost loop that a line is in."""
    loops = statements_around(site, (ast.For, ast.While))
    return node_place(site[0], loops[0].body[0]) if loops else None  # type: ignore[attr-defined]  # loops have bodies


def conditional_call(site: Site, method: str) -> Cause | None:
    """Return the test of the ``if`` around a call of a method in the function that a line is in."""
    scope = function_around(site)
    return only(
        node_place(site[0], node.test)
        for node in (own_nodes(scope) if scope is not None else ())
        if isinstance(node, ast.If) and any(method_calls(node, method))
    )


def context_around(path: Sequence[Site], word: str) -> Cause | None:
    """Return the decorator with a word in it, or the ``with`` block around the call that leads to a line.

    In the same function only a block around the whole loop is the place: out of a smaller one, the line is taken.
    """
    for site in path:
        scope = function_around(site)
        for decorator in scope.decorator_list if isinstance(scope, FUNCTIONS) else ():
            if word in ast.unparse(decorator):
                return node_place(site[0], decorator)
        loop = loop_around(site)
        for block in statements_around(site, ast.With):
            encloses = loop is not None and block.lineno < loop.lineno  # type: ignore[attr-defined]  # statements
            if site == path[0] and not encloses:
                continue
            if any(word in _meaning(item.context_expr, site) for item in block.items):  # type: ignore[attr-defined]
                return node_place(site[0], block.items[0].context_expr)  # type: ignore[attr-defined]
    return None


def _meaning(expression: ast.expr, site: Site) -> str:
    """Return the words of an expression, and of what was assigned to the name that it is."""
    words = ast.unparse(expression)
    tree = syntax_tree(site[0])
    for node in ast.walk(tree) if tree is not None and isinstance(expression, ast.Name) else ():
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == words for target in node.targets):
            words += " " + ast.unparse(node.value)
    return words


def calls_in_loop(site: Site, method: str) -> list[int]:
    """Return the lines that call a method of this name in the outermost loop around a line, or in its function."""
    function = function_around(site)
    if function is None:
        return []
    loops = [
        one
        for one in ast.walk(function)
        if isinstance(one, (ast.For, ast.While)) and one.lineno <= site[1] <= (one.end_lineno or 0)
    ]
    around = min(loops, key=lambda one: one.lineno, default=function)
    return sorted(
        node.lineno
        for node in ast.walk(around)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
    )


_NEVER_ZERO = ("clamp", "clamp_min", "clip", "len", "max")


def called_name(node: ast.AST) -> str:
    """Return the last part of what a call calls, in small letters; "division" and "**" for these; else ""."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div):
            safe = isinstance(node.right, ast.Constant) or called_name(node.right) in _NEVER_ZERO
            return "" if safe else "division"
        return "**" if isinstance(node.op, ast.Pow) else ""
    if not isinstance(node, ast.Call):
        return ""
    return (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")).lower()
