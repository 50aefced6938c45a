"""Lines that step, clear and scale in the learner's own words, and lines that read or write ``.grad``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

from ..events import NO_SITE, Site
from ..finding import Cause, Edit
from .syntax import (
    FUNCTIONS,
    called_on,
    calls_of,
    dotted,
    function_around,
    own_nodes,
    single_or_none,
    source_line,
    statements_around,
    syntax_tree,
)


def updates_by_hand(site: Site) -> Site:
    """Return the line that moves weights by their gradients in the file of another line; else that one."""
    return _line_of(site, _moves_weights)


def clears_by_hand(site: Site) -> Site:
    """Return the line that clears ``.grad`` itself in the file of another line; else that one."""
    return _line_of(site, _clears_grad)


def _line_of(site: Site, wanted: Callable[[ast.AST], bool]) -> Site:
    line = _first_line(syntax_tree(site[0]), wanted) if site != NO_SITE else 0
    return (site[0], line) if line else site


@lru_cache(maxsize=64)  # the log asks at every update
def _first_line(tree: ast.Module, wanted: Callable[[ast.AST], bool]) -> int:
    """Return the first of such lines; 0 if there is none, or if several functions have some."""
    found = [scope for scope in ast.walk(tree) if isinstance(scope, (ast.Module, *FUNCTIONS))]
    lines = [[one.lineno for one in own_nodes(scope) if wanted(one)] for scope in found]  # type: ignore[attr-defined]
    some = [one for one in lines if one]
    return min(some[0]) if len(some) == 1 else 0


def _moves_weights(node: ast.AST) -> bool:
    target: ast.AST | None = called_on(node, "sub_", "add_", "copy_", "addcmul_", "addcdiv_")
    if isinstance(node, (ast.AugAssign, ast.Assign)):
        target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    return target is not None and not mentions_grad(target) and mentions_grad(node)


def _clears_grad(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return getattr(node.targets[0], "attr", "") == "grad" and ast.unparse(node.value) == "None"
    return called_on(node, "zero_") is not None and mentions_grad(node)


def mentions_grad(node: ast.AST) -> bool:
    """Return whether an expression reads or writes ``.grad``."""
    return any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in ast.walk(node))


def statement_at(site: Site) -> ast.stmt | None:
    """Return the statement at a line, if it is a simple one that has its lines for itself."""
    statement = next(iter(statements_around(site, ast.stmt)), None)
    if statement is None or hasattr(statement, "body"):
        return None
    return None if source_line((site[0], statement.lineno))[: statement.col_offset].strip() else statement


def call_at(site: Site, method: str) -> ast.Call | None:
    """Return the only call of a method in the statement at a line."""
    statement = statement_at(site)
    return single_or_none(call for call, _ in calls_of(ast.walk(statement), method)) if statement is not None else None


def receiver(site: Site, method: str, other: Site | None = None) -> str:
    """Return ``scaler`` for ``scaler.step(optimizer)`` at a line; "" if it is no name, or not for another line, too."""
    here = other is None or function_around(site) is function_around(other)
    return dotted(called_on(call_at(site, method))) if here else ""


def calls_on(scope: ast.AST, name: str, *methods: str) -> list[ast.Call]:
    """Return a function's own calls of methods of an object, by its name."""
    return [call for call, owner in calls_of(own_nodes(scope), *methods) if dotted(owner) == name]


def with_loss(site: Site, words: str) -> Edit | Cause:
    """Return ``loss.backward()`` with other words for its loss, such as "{} / 4"; the place if it is no such line."""
    statement, call = statement_at(site), call_at(site, "backward")
    loss, scale = called_on(call), ""
    if call is None or loss is None or not isinstance(statement, ast.Expr) or statement.value is not call:
        return Cause(*site)
    if isinstance(loss, ast.Call) and called_on(loss, "scale") is not None:
        scale, loss = ast.unparse(loss.func), loss.args[0]
    changed = words.format(f"({ast.unparse(loss)})")
    arguments = ast.unparse(call).removeprefix(ast.unparse(call.func))
    return Edit(Cause(*site), ast.unparse(ast.parse(f"{scale}({changed}).backward{arguments}")))


def replaced(site: Site, old: str, new: str) -> Edit | None:
    """Return a line with other words in one place; None if it has the old ones not once, or goes on below."""
    statement, code = statement_at(site), source_line(site).partition("  #")[0].strip()
    if statement is None or statement.end_lineno != statement.lineno or code.count(old) != 1:
        return None
    return Edit(Cause(*site), code.replace(old, new))
