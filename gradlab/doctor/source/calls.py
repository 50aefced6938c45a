"""Calls in the learner's own words: those at a line, those that are missing, and those that never happen."""

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
    """Return the statement at a line, if it is a simple one that has its lines for itself."""
    for statement in syntax.statements_around(site, ast.stmt):
        before = syntax.source_line((site[0], statement.lineno))[: statement.col_offset]
        return None if hasattr(statement, "body") or before.strip() else statement
    return None


def call_at(site: Site, method: str) -> ast.Call | None:
    """Return the only call of a method in the statement at a line."""
    return single_or_none(call for call, _ in calls_of(ast.walk(statement_at(site) or ast.Pass()), method))


def receiver(site: Site, method: str, other: Site | None = None) -> str:
    """Return ``scaler`` for ``scaler.step(optimizer)`` at a line; "" if it is no name, or not for another line, too."""
    here = other is None or function_around(site) is function_around(other)
    return dotted(called_on(call_at(site, method))) if here else ""


def calls_on(scope: ast.AST, name: str, *methods: str) -> list[ast.Call]:
    """Return a function's own calls of methods of an object, by its name."""
    return [call for call, owner in calls_of(own_nodes(scope), *methods) if dotted(owner) == name]


def mentions_call(site: Site, method: str) -> bool:
    """Return whether the function of a line calls a method or function of this name."""
    return any(method in called(node).lower() for node in ast.walk(function_around(site)))


def without_brackets(files: Iterable[str], method: str, names: Collection[str] = ()) -> Edit | Cause | None:
    """Return the edit of ``optimizer.step``, on one of ``names`` if there are any, as a statement: it does nothing."""
    named = single_or_none(
        node_place(file, node.value)
        for file, node in syntax.nodes_in(files)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr == method
        if is_named(node.value.value, names)
    )
    return syntax.reworded(named, f"{syntax.words_of(named)}()") if named is not None else None


def never_reached(files: Iterable[str], method: str, reached: Collection[Site], names: Collection[str]) -> Cause | None:
    """Return the ``if`` around the only call of a method, on one of ``names``, that no event has come from."""
    calls = [(file, call, on) for file, node in syntax.nodes_in(files) for call, on in calls_of([node], method)]
    found = [(file, call.lineno) for file, call, on in calls if is_named(on, names)]
    file, line = single_or_none(site for site in found if site not in reached) or NO_SITE
    ifs = syntax.statements_around((file, line), ast.If)
    return node_place(file, ifs[0].test) if ifs else None


def wrong_step(backward: Site, name: str, others: Collection[str]) -> Edit | Cause | None:
    """Return another optimizer's step, one of several, below a ``backward()`` above which this one was cleared."""
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
    """Return whether an expression is one of some names, or ends like one; True where no names are given."""
    return not names or ast.unparse(node).split(".")[-1] in [name.split(".")[-1] for name in names]


def in_scope(name: str, site: Site) -> bool:
    """Return whether the line beside a line can use a name, as far as its function, its class and its file tell."""
    scope, parts = function_around(site), re.split(r"[.\[]", name)
    if parts[0] == "self":  # another class has other attributes
        kinds = [one for one in ast.walk(syntax.syntax_tree(site[0])) if isinstance(one, ast.ClassDef)]
        own = [one for one in kinds if scope in ast.walk(one)]
        return "self" in syntax.parameters(scope) and any(".".join(parts[:2]) in syntax.names_in(one) for one in own)
    known: set[str] = set()
    for one in syntax.scopes_around(site):
        nodes = list(own_nodes(one))
        loops = [node for node in nodes if isinstance(node, (ast.For, ast.comprehension))]
        ended = [loop for loop in loops if isinstance(loop, ast.comprehension) or not syntax.holds(loop, site[1])]
        others = {part for loop in ended for part in ast.walk(loop.target)}
        made = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        known |= {*syntax.parameters(one), *(node.id for node in made if node not in others)}
    return parts[0] in known


def name_in_scope(names: Iterable[str], site: Site) -> str:
    """Return the first of an object's names that the line beside a line can use; "" if there is none."""
    return next((name for name in names if in_scope(name, site)), "")


def loss_above(site: Site) -> str:
    """Return the variable that the loss was put into above a line, in the same loop; "" if it is not only one."""
    made: dict[str, set[str]] = {}
    for node in own_nodes(function_around(site)):
        if isinstance(node, ast.Assign) and node.lineno < site[1] and "loss" in dotted(node.targets[0]).lower():
            name, made_of = dotted(node.targets[0]), syntax.names_in(node.value)
            same = syntax.loop_around((site[0], node.lineno)) is syntax.loop_around(site)
            if same and name.isidentifier() and name not in made_of and not any(calls_of(ast.walk(node.value), "item")):
                made[name] = made_of
    return single_or_none(name for name in made if not any(name in parts for parts in made.values())) or ""


def condition_around(path: Iterable[Site]) -> Cause | None:
    """Return the test that a line, or else the call that leads to it, depends on; of several, the one with a ``%``."""
    for site in path:
        tests = [one.test for one in syntax.statements_around(site, ast.If) if "__name__" not in ast.unparse(one.test)]
        if compared := [test for test in tests if re.search("==|[<>]", ast.unparse(test))]:
            rest = [test for test in compared if "%" in ast.unparse(test)]
            return single_or_none(node_place(site[0], test) for test in (rest or compared))
    return None


def with_loss(site: Site, words: str) -> Edit | Cause:
    """Return ``loss.backward()`` with other words for its loss, such as "{} / 4"; the place if it is no such line."""
    statement, call = statement_at(site), call_at(site, "backward")
    loss = called_on(call)
    if loss is None or not isinstance(statement, ast.Expr) or statement.value is not call:
        return Cause(*site)
    scaled = isinstance(loss, ast.Call) and called_on(loss, "scale") is not None
    loss = loss.args[0] if isinstance(loss, ast.Call) and scaled else loss
    changed = words.format(syntax.operand(site[0], loss))
    return syntax.reworded(node_place(site[0], loss), changed if scaled or words[-1] == ")" else f"({changed})")


def replaced(site: Site, old: str, new: str) -> Edit | None:
    """Return a line with other words in one place; None if it has the old ones not once, or goes on below."""
    statement, code = statement_at(site), syntax.source_line(site).partition("  #")[0].strip()
    if statement is None or statement.end_lineno != statement.lineno or code.count(old) != 1:
        return None
    return Edit(Cause(*site), code.replace(old, new))


def updates_by_hand(site: Site) -> Site:
    """Return the line that moves weights by their gradients in the file of another line; else that one."""
    return _first_line(syntax.syntax_tree(site[0]), _moves_weights, site)


def clears_by_hand(site: Site) -> Site:
    """Return the line that clears ``.grad`` itself in the file of another line; else that one."""
    return _first_line(syntax.syntax_tree(site[0]), _clears_grad, site)


@lru_cache(maxsize=64)  # the log asks at every update
def _first_line(tree: ast.Module, wanted: Callable[[ast.AST], bool], otherwise: Site) -> Site:
    """Return the first of such lines, if only one function has some."""
    scopes = [one for one in ast.walk(tree) if isinstance(one, (ast.Module, *syntax.FUNCTIONS))]
    lines = [[one.lineno for one in own_nodes(scope) if wanted(one)] for scope in scopes]  # type: ignore[attr-defined]
    some = [one for one in lines if one]
    return (otherwise[0], min(some[0])) if len(some) == 1 else otherwise


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
