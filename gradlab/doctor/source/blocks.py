"""The loops and blocks around a line, and where in them ``train()``, ``eval()`` and ``no_grad()`` are missing."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, field

from ..events import Site
from ..finding import Cause, Edit
from .calls import in_scope
from .syntax import (
    FUNCTIONS,
    LOOP_KINDS,
    called,
    dotted,
    function_around,
    holds,
    loop_around,
    node_place,
    nodes_at,
    own_nodes,
    single_or_none,
    statements_around,
    syntax_tree,
)


@dataclass(frozen=True)
class EnclosingLoop:
    """A ``for`` or ``while`` around a line; two are equal if they are the same statement."""

    file: str
    line: int
    """Line of the ``for`` or ``while``."""
    words: str = field(compare=False)
    """Its first line, as written: "for epoch in range(5)"."""
    through: str = field(compare=False)
    """Names of the functions between the line and this loop: "train_task"."""
    limits: frozenset[str] = field(compare=False)
    """What its ``range`` counts to, as source; empty for other loops."""
    conditional: bool = field(compare=False)
    """True if the line is inside an ``if`` within this loop."""


def loops_around(chain: tuple[Site, ...]) -> list[EnclosingLoop]:
    """Return the loops around the lines of a chain of calls, the innermost first."""
    found: list[EnclosingLoop] = []
    functions: list[str] = []
    for file, line in chain:
        conditional = False
        for node in _blocks_around(file, line):
            if isinstance(node, FUNCTIONS):
                functions.append(node.name)
                break
            if isinstance(node, LOOP_KINDS):
                through = " ".join(functions)
                found.append(EnclosingLoop(file, node.lineno, _header(node), through, _limits(node), conditional))
            conditional = not isinstance(node, LOOP_KINDS)
    return found


def _blocks_around(file: str, line: int) -> list[ast.stmt]:
    found = []
    for node in ast.walk(syntax_tree(file)):
        if isinstance(node, (*FUNCTIONS, *LOOP_KINDS, ast.If, ast.Try)):
            last = node.body[-1] if isinstance(node, LOOP_KINDS) else node  # the else of a loop is run once
            if node.body[0].lineno <= line <= (last.end_lineno or 0):
                found.append(node)
    return sorted(found, key=lambda node: -node.lineno)


def _header(loop: ast.For | ast.AsyncFor | ast.While) -> str:
    if isinstance(loop, ast.While):
        return f"while {ast.unparse(loop.test)}"
    return f"for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}"


def _limits(loop: ast.For | ast.AsyncFor | ast.While) -> frozenset[str]:
    return frozenset(
        ast.unparse(call.args[min(1, len(call.args) - 1)])
        for call in ast.walk(loop.test if isinstance(loop, ast.While) else loop.iter)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("range", "trange")
        if call.args
    )


_BLOCKS = (*LOOP_KINDS, ast.With, ast.AsyncWith)


def name_in(site: Site, names: Collection[str]) -> str:
    """Return the name of a model that the function of a line uses itself, or else can; "" if it is not only one."""
    used = {dotted(node) for node in own_nodes(function_around(site))} & set(names)
    return single_or_none(used or (name for name in names if in_scope(name, site))) or ""


def train_place(put: tuple[Site, ...], trained: tuple[Site, ...]) -> Cause | None:
    """Return where ``train()`` is missing: beside the call that has led to ``eval()``, in the loop that trains, too.

    ``put`` are the lines that led to eval(), ``trained`` those that led to the model's call in training, the innermost
    first. Where they meet in one function, it is below the one that led to eval(), or else at the top.
    """
    for call in trained:
        scope = function_around(call)
        one = next((site for site in put if site[0] == call[0] and function_around(site) is scope), None)
        if one is None or not scope.body:
            continue
        for block in (*statements_around(call, (*_BLOCKS, ast.If, ast.Try)), scope):
            body: list[ast.stmt] = block.body  # type: ignore[union-attr]  # blocks, functions and files have one
            at, after = _index(body, call[1]), _index(body, one[1])
            if at >= 0 and after >= 0:
                break
        inline = one == put[0]  # then what lies between may need evaluation mode, too
        start = at if inline and after < at else after + 1 if after < at else 0
        if at < 0 or at == after or (start == 0 and isinstance(block, (ast.Module, ast.If))):
            return None
        documented = isinstance(body[start], ast.Expr) and isinstance(body[start].value, ast.Constant)  # type: ignore[attr-defined]  # an Expr
        return Cause(call[0], body[start + documented].lineno, insert="above")
    return None


def _index(body: list[ast.stmt], line: int) -> int:
    return next((number for number, part in enumerate(body) if holds(part, line)), -1)


def validation_place(call: Site, training: Collection[Site]) -> Cause:
    """Return the start of a validation: the outermost block around a call without a line that trains, or the call."""
    blocks = [one for one in statements_around(call, _BLOCKS) if not _trains(one, call[0], training)]
    statement = blocks[-1] if blocks else next(iter(statements_around(call, ast.stmt)), None)
    return Cause(call[0], getattr(statement, "lineno", call[1]), insert="above")


def no_grad_place(call: Site, training: Collection[Site], *, used: bool) -> Edit | Cause | None:
    """Return where ``no_grad`` is missing: above the function or the loops without lines that train; else None.

    ``used``: did some graph of the call live on, in a variable at least? Then it may leave the function.
    """
    file, function = call[0], function_around(call)
    if not isinstance(function, ast.Module) and not used and not _trains(function, file, training):
        place = Cause(file, function.lineno, insert="above")
        known = {one.name for node in syntax_tree(file).body if isinstance(node, ast.Import) for one in node.names}
        return Edit(place, "@torch.no_grad()") if "torch" in known else place
    loops = [one for one in statements_around(call, LOOP_KINDS) if not _trains(one, file, training)]
    return Cause(file, loops[-1].lineno, insert="above") if loops else None


def _trains(node: ast.AST, file: str, training: Collection[Site]) -> bool:
    return any(site[0] == file and holds(node, site[1]) for site in training)


_ITERATORS = ("filter", "map", "iter", "chain", "zip", "parameters")


def used_up_iterator(path: tuple[Site, ...]) -> Cause | None:
    """Return what is put into the name that a clip is given, if that is an iterator made outside of the clip's loop.

    ``path`` are the lines that led to the clip, the innermost first: a helper may have got it from its caller.
    """
    for site in path:
        calls = [call for part in nodes_at(site) for call in ast.walk(part) if isinstance(call, ast.Call)]
        clips = [call for call in calls if "clip" in called(call)] if site == path[0] else calls
        given = [[*call.args, *(keyword.value for keyword in call.keywords)] for call in clips]
        names = {dotted(value) for values in given for value in values} - {""}
        for name in sorted(names):
            made = [one for one in ast.walk(syntax_tree(site[0])) if isinstance(one, ast.Assign)]
            lines = {one.lineno: one.value for one in made if dotted(one.targets[0]) == name}
            if lines and all(isinstance(one, ast.GeneratorExp) or called(one) in _ITERATORS for one in lines.values()):
                first = (site[0], min(lines))
                same = function_around(site) is function_around(first) and loop_around(site) is loop_around(first)
                return None if same else node_place(site[0], lines[first[1]])
    return None
