"""The loops of the learner's source around a line and around the lines that led to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..events import Site
from .syntax import syntax_tree

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


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
        tree = syntax_tree(file)
        conditional = False
        for node in reversed(_path(tree, line) if tree is not None else []):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions.append(node.name)
                break
            conditional = conditional or isinstance(node, (ast.If, ast.Try))
            if isinstance(node, _LOOPS):
                through = " ".join(functions)
                found.append(EnclosingLoop(file, node.lineno, _header(node), through, _limits(node), conditional))
                conditional = False
    return found


def _path(tree: ast.AST, line: int) -> list[ast.AST]:
    """Return the statements whose bodies hold a line, the outermost first."""
    path: list[ast.AST] = []
    bodies = [tree]
    while bodies:
        node = bodies.pop()
        for statement in _statements(node):
            if statement.lineno <= line <= (statement.end_lineno or 0):
                if _holds(statement, line):
                    path.append(statement)
                bodies = [statement]
                break
    return path


def _holds(statement: ast.stmt, line: int) -> bool:
    body = getattr(statement, "body", None)
    if not body or line < body[0].lineno:
        return False
    return not isinstance(statement, _LOOPS) or line <= body[-1].end_lineno  # not in its else


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for part in ("body", "orelse", "finalbody"):
        yield from getattr(node, part, None) or ()
    for handler in getattr(node, "handlers", ()):
        yield from handler.body


def _header(loop: ast.For | ast.AsyncFor | ast.While) -> str:
    if isinstance(loop, ast.While):
        return f"while {ast.unparse(loop.test)}"
    return f"for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}"


def _limits(loop: ast.For | ast.AsyncFor | ast.While) -> frozenset[str]:
    if isinstance(loop, ast.While):
        return frozenset()
    return frozenset(
        ast.unparse(call.args[min(1, len(call.args) - 1)])
        for call in ast.walk(loop.iter)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("range", "trange")
        if call.args
    )


def argument_of(site: Site, function: str, name: str, position: int) -> str:
    """Return the source of an argument of a function's call at a line, by name or position; "" if it is not known."""
    tree = syntax_tree(site[0])
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call) or not node.lineno <= site[1] <= (node.end_lineno or 0):
            continue
        if ast.unparse(node.func).rpartition(".")[2] != function:
            continue
        named = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        if name in named or any(isinstance(one, ast.Starred) for one in node.args):
            return named.get(name, "")
        return ast.unparse(node.args[position]) if len(node.args) > position else ""
    return ""
