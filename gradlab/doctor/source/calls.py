"""Calls: those that never happen, that are missing, that compute a loss, and that stand in a loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable

from ..events import Site
from ..finding import Cause, Edit
from .syntax import (
    called,
    calls_of,
    dotted,
    function_around,
    holds,
    loop_around,
    node_place,
    nodes_in,
    own_nodes,
    parameters,
    reworded,
    scopes_around,
    single_or_none,
    statements_around,
    syntax_tree,
    words_of,
)

_NEVER_ZERO = ("clamp", "clamp_min", "clip", "len", "max")


def without_brackets(files: Iterable[str], method: str, names: Collection[str] = ()) -> Cause | None:
    """Return the place of ``optimizer.step`` as a statement of its own: it does nothing.

    With ``names``, it counts only on one of these, such as "optimizer" or "self.optimizer".
    """
    return single_or_none(
        node_place(file, node.value)
        for file, node in nodes_in(files)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr == method
        if is_named(node.value.value, names)
    )


def never_reached(files: Iterable[str], method: str, reached: Collection[Site], names: Collection[str]) -> Cause | None:
    """Return the ``if`` around the only call of a method, on one of ``names``, that no event has come from."""
    found = [(file, one, on) for file, node in nodes_in(files) for one, on in calls_of([node], method)]
    sites = [(file, one.lineno) for file, one, on in found if is_named(on, names)]
    unreached = [site for site in sites if site not in reached]
    ifs = statements_around(unreached[0], ast.If) if len(unreached) == 1 else []
    return node_place(unreached[0][0], ifs[0].test) if ifs else None


def wrong_step(backward: Site, name: str, others: Collection[str]) -> Edit | Cause | None:
    """Return the step of another optimizer below a ``backward()`` in an optimizer's turn: where it was cleared last.

    The other one is stepped elsewhere in the function, too, so that this is not the missing step's neighbour.
    """
    nodes = [node for node in own_nodes(function_around(backward)) if isinstance(node, ast.Attribute)]
    nodes.sort(key=lambda node: node.lineno)
    cleared = [node.value for node in nodes if node.attr == "zero_grad" and node.lineno < backward[1]]
    steps = [node.value for node in nodes if node.attr == "step"]
    below = [node for node in steps if node.lineno > backward[1]]
    if not cleared or not below or not is_named(cleared[-1], [name]) or not is_named(below[0], others):
        return None
    twice = sum(ast.unparse(node) == ast.unparse(below[0]) for node in steps) > 1
    return reworded(node_place(backward[0], below[0]), name) if twice else None


def is_named(node: ast.AST, names: Collection[str]) -> bool:
    """Return whether an expression is one of some names, or ends like one; True where no names are given."""
    last = ast.unparse(node).split(".")[-1]
    return not names or any(name.split(".")[-1] == last for name in names)


def call_it(named: Cause) -> Edit | Cause:
    """Return the edit that puts brackets behind a method that is only named."""
    return reworded(named, f"{words_of(named)}()")


def in_scope(name: str, site: Site) -> bool:
    """Return whether the line beside a line can use a name, as far as its function, its class and its file tell."""
    tree, scope, parts = syntax_tree(site[0]), function_around(site), re.split(r"[.\[]", name)
    if parts[0] == "self":  # another class has other attributes
        kinds = [one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and scope in ast.walk(one)]
        attributes = {dotted(node) for kind in kinds for node in ast.walk(kind)}
        return "self" in parameters(scope) and ".".join(parts[:2]) in attributes
    known: set[str] = set()
    for one in scopes_around(site):
        nodes = list(own_nodes(one))
        loops = [node for node in nodes if isinstance(node, (ast.For, ast.comprehension))]
        ended = [loop for loop in loops if isinstance(loop, ast.comprehension) or not holds(loop, site[1])]
        others = {part for loop in ended for part in ast.walk(loop.target)}
        made = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        known |= {*parameters(one), *(node.id for node in made if node not in others)}
    return parts[0] in known


def name_in_scope(names: Iterable[str], site: Site) -> str:
    """Return the first of an object's names that the line beside a line can use; "" if there is none."""
    return next((name for name in names if in_scope(name, site)), "")


def mentions_call(site: Site, method: str) -> bool:
    """Return whether the function of a line calls a method or function of this name."""
    return any(method in called_name(node) for node in ast.walk(function_around(site)))


def loss_above(site: Site) -> str:
    """Return the variable that the loss was put into above a line, in the same loop; "" if it is not only one."""
    loop, made = loop_around(site), {}
    for node in own_nodes(function_around(site)):
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name) and node.lineno < site[1]:
            parts = list(ast.walk(node.value))
            made_of = {one.id for one in parts if isinstance(one, ast.Name)}
            a_loss = "loss" in target.id.lower() and target.id not in made_of and not any(calls_of(parts, "item"))
            if a_loss and loop_around((site[0], node.lineno)) is loop:
                made[target.id] = made_of
    return single_or_none(name for name in made if not any(name in parts for parts in made.values())) or ""


def condition_around(path: Iterable[Site]) -> Cause | None:
    """Return the test that a line, or else the call that leads to it, depends on; of several, the one with a ``%``."""
    for site in path:
        tests = [one.test for one in statements_around(site, ast.If) if "__name__" not in ast.unparse(one.test)]
        if compared := [test for test in tests if _has(test, ast.Eq, ast.GtE, ast.Gt, ast.LtE, ast.Lt)]:
            rest = [test for test in compared if _has(test, ast.Mod)]
            return single_or_none(node_place(site[0], test) for test in (rest or compared))
    return None


def _has(node: ast.AST, *kinds: type[ast.AST]) -> bool:
    return any(isinstance(one, kinds) for one in ast.walk(node))


def called_name(node: ast.AST) -> str:
    """Return the last part of what a call calls, in small letters; "division" and "**" for these; else ""."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div):
            safe = isinstance(node.right, ast.Constant) or called_name(node.right) in _NEVER_ZERO
            return "" if safe else "division"
        return "**" if isinstance(node.op, ast.Pow) else ""
    return called(node).lower()
