"""The loops and blocks around a line, and where in them ``train()``, ``eval()`` and ``no_grad()`` are missing."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, field

from ..events import Site
from ..finding import Cause, Edit
from . import syntax
from .calls import in_scope
from .syntax import LOOP_KINDS, called, dotted, function_around, holds, statements_around

_BLOCKS = (*LOOP_KINDS, ast.With, ast.AsyncWith)
_ITERATORS = ("filter", "map", "iter", "chain", "zip", "parameters")


@dataclass(frozen=True)
class EnclosingLoop:
    """A ``for`` or ``while`` around a line; two are equal if they are the same statement."""

    file: str
    line: int
    """Line of the ``for`` or ``while``."""
    words: str = field(compare=False)
    """What it goes through, or its condition: "epoch in range(5)"."""
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
    for site in chain:
        conditional = False
        for node in statements_around(site, (*LOOP_KINDS, ast.If, ast.Try)):
            if isinstance(node, LOOP_KINDS):
                head = [node.test] if isinstance(node, ast.While) else [node.target, node.iter]
                words, ranges = " in ".join(map(ast.unparse, head)), list(ast.walk(head[-1]))
                calls = [one for one in ranges if isinstance(one, ast.Call) and called(one) in ("range", "trange")]
                limits = frozenset(ast.unparse(one.args[:2][-1]) for one in calls if one.args)
                found.append(EnclosingLoop(site[0], node.lineno, words, " ".join(functions), limits, conditional))
            conditional = not isinstance(node, LOOP_KINDS)
        functions.append(getattr(function_around(site), "name", ""))
    return found


def name_in(site: Site, names: Collection[str]) -> str:
    """Return the name of a model that the function of a line uses itself, or else can; "" if it is not only one."""
    used = {dotted(node) for node in syntax.own_nodes(function_around(site))} & set(names)
    return syntax.single_or_none(used or (name for name in names if in_scope(name, site))) or ""


def train_place(put: tuple[Site, ...], trained: tuple[Site, ...]) -> Cause | None:
    """Return where ``train()`` is missing: where the lines that led to ``eval()`` and to the call in training meet."""
    for call in trained:
        scope = function_around(call)
        one = next((site for site in put if site[0] == call[0] and function_around(site) is scope), None)
        if one is None:
            continue
        for block in (*statements_around(call, (*_BLOCKS, ast.If, ast.Try)), scope):
            body: list[ast.stmt] = block.body  # type: ignore[union-attr]  # blocks, functions and files have one
            places = [[at for at, part in enumerate(body) if holds(part, site[1])] for site in (call, one)]
            if all(places):
                break
        else:
            return None
        at, after = places[0][0], places[1][0]
        start = 0 if after > at else at if one == put[0] else after + 1  # in between it may need evaluation mode, too
        if at == after or (start == 0 and isinstance(block, (ast.Module, ast.If))):
            return None
        documented = isinstance(first := body[start], ast.Expr) and isinstance(first.value, ast.Constant)
        return Cause(call[0], body[start + documented].lineno, insert="above")
    return None


def validation_place(call: Site, training: Collection[Site]) -> Cause:
    """Return the start of a validation: the outermost block around a call without a line that trains, or the call."""
    blocks = [one for one in statements_around(call, _BLOCKS) if not _trains(one, call[0], training)]
    around = [*reversed(blocks), *statements_around(call, ast.stmt)]
    return Cause(call[0], around[0].lineno if around else call[1], insert="above")


def no_grad_place(call: Site, training: Collection[Site], *, used: bool) -> Edit | Cause | None:
    """Return where ``no_grad`` is missing: above the function or the loops without lines that train; else None.

    ``used``: did some graph of the call live on, in a variable at least? Then it may leave the function.
    """
    file, function = call[0], function_around(call)
    if not isinstance(function, ast.Module) and not used and not _trains(function, file, training):
        place = Cause(file, function.lineno, insert="above")
        return Edit(place, "@torch.no_grad()") if "torch" in syntax.imported(file) else place
    loops = [one for one in statements_around(call, LOOP_KINDS) if not _trains(one, file, training)]
    return Cause(file, loops[-1].lineno, insert="above") if loops else None


def _trains(node: ast.AST, file: str, training: Collection[Site]) -> bool:
    return any(site[0] == file and holds(node, site[1]) for site in training)


def used_up_iterator(path: tuple[Site, ...]) -> Cause | None:
    """Return what is put into the name that a clip, or what led to it, is given: an iterator from outside its loop."""
    for site in path:
        calls = [one for one in syntax.nodes_at(site) if isinstance(one, ast.Call)]
        for name in sorted({dotted(value) for call in calls for value in syntax.arguments(call)} - {""}):
            made = syntax.assigned(site[0], name)
            if made and all(isinstance(one, ast.GeneratorExp) or called(one) in _ITERATORS for one in made):
                here = (site[0], made[0].lineno)
                same = function_around(site) is function_around(here)
                same = same and syntax.loop_around(site) is syntax.loop_around(here)
                return None if same else syntax.node_place(site[0], made[0])
    return None
