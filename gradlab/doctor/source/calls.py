"""Searches of the learner's source for calls, names and conditions, and the edits that correct them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache

from ..events import NO_SITE, Site
from ..finding import Cause, Edit
from . import syntax
from .syntax import called, called_on, calls_of, dotted, function_around, node_place, own_nodes, single_or_none


def statement_at(site: Site) -> ast.stmt | None:
    """Return the innermost statement at a line, or None if it is compound or is not the first on its line."""
    for statement in syntax.statements_around(site, ast.stmt):
        before = syntax.source_line((site[0], statement.lineno))[: statement.col_offset]
        return None if hasattr(statement, "body") or before.strip() else statement
    return None


def call_at(site: Site, method: str) -> ast.Call | None:
    """Return the only call to ``method`` in the statement at ``site``, or None if there is not exactly one."""
    return single_or_none(call for call, _ in calls_of(ast.walk(statement_at(site) or ast.Pass()), method))


def receiver(site: Site, method: str, other: Site | None = None) -> str:
    """Return "scaler" for ``scaler.step()``, or "" if the object has no name or ``other`` is in another function."""
    here = other is None or function_around(site) is function_around(other)
    return dotted(called_on(call_at(site, method))) if here else ""


def calls_on(scope: ast.AST, name: str, *methods: str) -> list[ast.Call]:
    """Return the calls ``name.method()`` in ``scope``, without those in functions and classes inside it."""
    return [call for call, owner in calls_of(own_nodes(scope), *methods) if dotted(owner) == name]


def mentions_call(site: Site, method: str) -> bool:
    """Return whether the function around a line calls a function or method whose name contains ``method``."""
    return any(method in called(node).lower() for node in ast.walk(function_around(site)))


def without_brackets(files: Iterable[str], method: str, names: Collection[str] = ()) -> Edit | Cause | None:
    """Return the edit that adds parentheses to the only statement ``name.method`` with one of ``names``, or None."""
    named = single_or_none(
        node_place(file, node.value)
        for file, node in syntax.nodes_in(files)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr == method
        if is_named(node.value.value, names)
    )
    return syntax.reworded(named, f"{syntax.text_of(named)}()") if named is not None else None


def never_reached(files: Iterable[str], method: str, reached: Collection[Site], names: Collection[str]) -> Cause | None:
    """Return the location of the ``if`` test around the only call ``name.method()`` that was not reached, or None."""
    calls = [(file, call, on) for file, node in syntax.nodes_in(files) for call, on in calls_of([node], method)]
    sites = [(file, call.lineno) for file, call, on in calls if is_named(on, names)]
    file, line = single_or_none(site for site in sites if site not in reached) or NO_SITE
    ifs = syntax.statements_around((file, line), ast.If)
    return node_place(file, ifs[0].test) if ifs else None


def wrong_step(backward: Site, name: str, others: Collection[str]) -> Edit | Cause | None:
    """Return the edit that changes the first ``step()`` below ``backward`` to ``name.step()``, or only its location.

    Return None unless that is a repeated step of one of ``others``, and ``name`` is cleared above ``backward``.
    """
    nodes = [node for node in own_nodes(function_around(backward)) if isinstance(node, ast.Attribute)]
    nodes.sort(key=lambda node: node.lineno)
    cleared = [node.value for node in nodes if node.attr == "zero_grad" and node.lineno < backward[1]]
    steps = [node.value for node in nodes if node.attr == "step"]
    below = [node for node in steps if node.lineno > backward[1]]
    if not cleared or not below or not is_named(cleared[-1], [name]) or not is_named(below[0], others):
        return None
    twice = [ast.unparse(node) for node in steps].count(ast.unparse(below[0])) > 1
    return syntax.reworded(node_place(backward[0], below[0]), name) if twice else None


def is_named(node: ast.AST, names: Collection[str]) -> bool:
    """Return whether the last part of an expression is that of one of ``names``, or True if ``names`` is empty."""
    return not names or ast.unparse(node).split(".")[-1] in [name.split(".")[-1] for name in names]


def in_scope(name: str, site: Site) -> bool:
    """Return whether the function, class or file of ``site`` defines ``name``, so that a new line there can use it."""
    scope, parts = function_around(site), re.split(r"[.\[]", name)
    if parts[0] == "self":  # the attribute must be used in the same class
        kinds = [node for node in ast.walk(syntax.syntax_tree(site[0])) if isinstance(node, ast.ClassDef)]
        used = (syntax.names_in(kind) for kind in kinds if scope in ast.walk(kind))
        return "self" in syntax.parameters(scope) and any(".".join(parts[:2]) in names for names in used)
    names: set[str] = set()
    for outer in syntax.scopes_around(site):
        nodes = list(own_nodes(outer))
        loops = [node for node in nodes if isinstance(node, (ast.For, ast.comprehension))]
        ended = [loop for loop in loops if isinstance(loop, ast.comprehension) or not syntax.holds(loop, site[1])]
        others = {part for loop in ended for part in ast.walk(loop.target)}
        stores = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        names |= {*syntax.parameters(outer), *(node.id for node in stores if node not in others)}
    return parts[0] in names


def name_in_scope(names: Iterable[str], site: Site) -> str:
    """Return the first of ``names`` that a new line next to ``site`` can use, or "" if there is none."""
    return next((name for name in names if in_scope(name, site)), "")


def loss_above(site: Site) -> str:
    """Return the only loss variable assigned above a line, in the same loop, or "" if there is not exactly one."""
    sources: dict[str, set[str]] = {}
    for node in own_nodes(function_around(site)):
        if isinstance(node, ast.Assign) and node.lineno < site[1] and "loss" in dotted(node.targets[0]).lower():
            name, names = dotted(node.targets[0]), syntax.names_in(node.value)
            same = syntax.loop_around((site[0], node.lineno)) is syntax.loop_around(site)
            if same and name.isidentifier() and name not in names and not any(calls_of(ast.walk(node.value), "item")):
                sources[name] = names
    return single_or_none(name for name in sources if not any(name in parts for parts in sources.values())) or ""


def condition_around(path: Iterable[Site]) -> Cause | None:
    """Return the location of an ``if`` condition that compares values, around the first line of ``path`` that has one.

    Conditions with ``%`` come first; those on ``__name__`` do not count. Return None if there are none or several.
    """
    for site in path:
        tests = [(ast.unparse(branch.test), branch.test) for branch in syntax.statements_around(site, ast.If)]
        if compared := [(text, test) for text, test in tests if "__name__" not in text and re.search("==|[<>]", text)]:
            rest = [(text, test) for text, test in compared if "%" in text]
            return single_or_none(node_place(site[0], test) for _, test in (rest or compared))
    return None


def with_loss(site: Site, template: str) -> Edit | Cause:
    """Return the edit that puts the loss of ``backward()`` into ``template``, as in "{} / 4", or only the location."""
    statement, call = statement_at(site), call_at(site, "backward")
    loss = called_on(call)
    if loss is None or not isinstance(statement, ast.Expr) or statement.value is not call:
        return Cause(*site)
    scaled = isinstance(loss, ast.Call) and called_on(loss, "scale") is not None
    loss = loss.args[0] if isinstance(loss, ast.Call) and scaled else loss
    changed = template.format(syntax.operand(site[0], loss))
    return syntax.reworded(node_place(site[0], loss), changed if scaled or template[-1] == ")" else f"({changed})")


def replaced(site: Site, old: str, new: str) -> Edit | None:
    """Return the edit that replaces ``old``, or None if the line is not a whole statement with ``old`` once in it."""
    statement, code = statement_at(site), syntax.source_line(site).partition("  #")[0].strip()
    if statement is None or statement.end_lineno != statement.lineno or code.count(old) != 1:
        return None
    return Edit(Cause(*site), code.replace(old, new))


def updates_by_hand(site: Site) -> Site:
    """Return the first line in the file of ``site`` that computes a value from ``.grad``, as a manual update does
    (``w -= lr * w.grad``), or ``site`` itself unless exactly one scope has such lines.
    """
    return _first_line(syntax.syntax_tree(site[0]), _moves_weights, site)


def clears_by_hand(site: Site) -> Site:
    """Return the file's first line that clears ``.grad`` by hand, or ``site`` if several scopes or none contain one."""
    return _first_line(syntax.syntax_tree(site[0]), _clears_grad, site)


@lru_cache(maxsize=64)  # called at every update
def _first_line(tree: ast.Module, wanted: Callable[[ast.AST], bool], otherwise: Site) -> Site:
    scopes = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, *syntax.FUNCTIONS))]
    lines = [[node.lineno for node in own_nodes(scope) if wanted(node)] for scope in scopes]  # type: ignore[attr-defined]
    matching = list(filter(None, lines))
    return (otherwise[0], min(matching[0])) if len(matching) == 1 else otherwise


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
    return any(isinstance(inner, ast.Attribute) and inner.attr == "grad" for inner in ast.walk(node))
