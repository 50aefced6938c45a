"""The loops of the learner's source around a line and around the lines that led to it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ..events import Site
from .syntax import FUNCTIONS, LOOP_KINDS, syntax_tree


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
    """Is the line inside an ``if`` within this loop?"""


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
