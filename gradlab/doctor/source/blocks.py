"""Loops and blocks around a line, and the locations in them for ``train()``, ``eval()`` and ``no_grad()``."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, field

from ..events import Site
from ..finding import Cause, Edit
from . import syntax
from .calls import in_scope
from .syntax import LOOP_KINDS, called, dotted, function_around, holds, loop_around, statements_around

_BLOCKS = (*LOOP_KINDS, ast.With, ast.AsyncWith)
_ITERATORS = ("filter", "map", "iter", "chain", "zip", "parameters")


@dataclass(frozen=True)
class EnclosingLoop:
    """A ``for`` or ``while`` statement around a line, which is compared by its file and first line."""

    file: str
    line: int
    text: str = field(compare=False)
    """Target and iterable, or condition: "epoch in range(5)"."""
    through: str = field(compare=False)
    """Names of the functions called between this loop and the line, separated by spaces: "train_task"."""
    limits: frozenset[str] = field(compare=False)
    """Source of the upper limit of each ``range`` or ``trange`` in the iterable or condition; empty without these."""
    conditional: bool = field(compare=False)
    """True if an ``if`` or ``try`` inside this loop is around the line or around the next inner loop."""


def loops_around(chain: tuple[Site, ...]) -> list[EnclosingLoop]:
    """Return the loops around the lines of a call chain, the innermost first."""
    loops: list[EnclosingLoop] = []
    functions: list[str] = []
    for site in chain:
        conditional = False
        for node in statements_around(site, (*LOOP_KINDS, ast.If, ast.Try)):
            if isinstance(node, LOOP_KINDS):
                head = [node.test] if isinstance(node, ast.While) else [node.target, node.iter]
                text, nodes = " in ".join(map(ast.unparse, head)), list(ast.walk(head[-1]))
                calls = [call for call in nodes if isinstance(call, ast.Call) and called(call) in ("range", "trange")]
                limits = frozenset(ast.unparse(call.args[:2][-1]) for call in calls if call.args)
                loops.append(EnclosingLoop(site[0], node.lineno, text, " ".join(functions), limits, conditional))
            conditional = not isinstance(node, LOOP_KINDS)
        functions.append(getattr(function_around(site), "name", ""))
    return loops


def name_in(site: Site, names: Collection[str]) -> str:
    """Return the only one of ``names`` used in the function around ``site`` (if none, the only one in scope), or ""."""
    used = {dotted(node) for node in syntax.own_nodes(function_around(site))} & set(names)
    return syntax.single_or_none(used or (name for name in names if in_scope(name, site))) or ""


def train_place(eval_path: tuple[Site, ...], call_path: tuple[Site, ...]) -> Cause | None:
    """Return the location for a missing ``train()``, in the innermost block with a line of each path, or None."""
    for call in call_path:
        scope = function_around(call)
        eval_site = next((site for site in eval_path if site[0] == call[0] and function_around(site) is scope), None)
        if eval_site is None:
            continue
        for block in (*statements_around(call, (*_BLOCKS, ast.If, ast.Try)), scope):
            body: list[ast.stmt] = block.body  # type: ignore[union-attr]  # all of these have a body
            matches = [[i for i, part in enumerate(body) if holds(part, site[1])] for site in (call, eval_site)]
            if all(matches):
                break
        else:
            return None
        trained, evaluated = matches[0][0], matches[1][0]  # positions in ``body``; statements between may need eval()
        start = 0 if evaluated > trained else trained if eval_site == eval_path[0] else evaluated + 1
        if trained == evaluated or (start == 0 and isinstance(block, (ast.Module, ast.If))):
            return None
        documented = isinstance(first := body[start], ast.Expr) and isinstance(first.value, ast.Constant)
        return Cause(call[0], body[start + documented].lineno, insert="above")
    return None


def validation_place(call: Site, training: Collection[Site]) -> Cause:
    """Return the location above the outermost loop or ``with`` around ``call`` that never trains, or above ``call``."""
    blocks = [block for block in statements_around(call, _BLOCKS) if not _trains(block, call[0], training)]
    around = [*reversed(blocks), *statements_around(call, ast.stmt)]
    return Cause(call[0], around[0].lineno if around else call[1], insert="above")


def no_grad_place(call: Site, training: Collection[Site], *, used: bool) -> Edit | Cause | None:
    """Return the edit or location for a missing ``no_grad``, above the function or the outermost loop around ``call``.

    The function or loop must contain no line of ``training``, or None is returned. If ``used`` is True, a later
    backward pass may have used a graph of the call, and only loops are considered.
    """
    file, function = call[0], function_around(call)
    if not isinstance(function, ast.Module) and not used and not _trains(function, file, training):
        cause = Cause(file, function.lineno, insert="above")
        return Edit(cause, "@torch.no_grad()") if "torch" in syntax.imported(file) else cause
    loops = [loop for loop in statements_around(call, LOOP_KINDS) if not _trains(loop, file, training)]
    return Cause(file, loops[-1].lineno, insert="above") if loops else None


def _trains(node: ast.AST, file: str, training: Collection[Site]) -> bool:
    return any(site[0] == file and holds(node, site[1]) for site in training)


def used_up_iterator(path: tuple[Site, ...]) -> Cause | None:
    """Return the location where an iterator is created outside the loop or function that uses it up, or None."""
    for site in path:
        calls = [node for node in syntax.nodes_at(site) if isinstance(node, ast.Call)]
        for name in sorted({dotted(value) for call in calls for value in syntax.arguments(call)} - {""}):
            values = syntax.assigned(site[0], name)
            if values and all(isinstance(x, ast.GeneratorExp) or called(x) in _ITERATORS for x in values):
                here = (site[0], values[0].lineno)
                same = function_around(site) is function_around(here) and loop_around(site) is loop_around(here)
                return None if same else syntax.node_place(site[0], values[0])
    return None
