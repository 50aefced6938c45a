"""Lines that keep a tensor with its graph: they add it to a variable, or give a state back to the model."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..events import GraphHolder
from ..finding import Cause, Edit
from .syntax import called_on, function_around, nodes_at, only, source_line, syntax_tree

_ADDS = ("append", "appendleft", "add", "extend", "insert", "setdefault", "update")


def adding_line(file: str, name: str, line: int) -> int:
    """Return the only line that adds to a variable of the function that ``line`` is in, or to an attribute; else 0."""
    return _only_line(file, name, line, lambda node: _adds(node, name))


def carrying_line(file: str, name: str, line: int) -> int:
    """Return the only line that takes a state and gives it back, as ``out, hidden = rnn(x, hidden)``; else 0."""
    names = {name}
    for node in ast.walk(function_around((file, line))):
        if isinstance(node, ast.Assign) and _is(node.value, name):  # h_in = h_out
            names |= {ast.unparse(target) for target in node.targets}

    def carries(node: ast.AST) -> bool:
        if not isinstance(node, ast.Assign) or isinstance(node.value, (ast.Name, ast.Attribute)):
            return False
        taken = any(_is(one, name) for target in node.targets for one in ast.walk(target))
        return taken and any(_is(one, known) for one in ast.walk(node.value) for known in names)

    return _only_line(file, name, line, carries)


def _only_line(file: str, name: str, line: int, wanted: Callable[[ast.AST], bool]) -> int:
    scope = syntax_tree(file) if "." in name else function_around((file, line))
    return only(node.lineno for node in ast.walk(scope) if wanted(node)) or 0  # type: ignore[attr-defined]  # both have lines


def _adds(node: ast.AST, name: str) -> bool:
    target: ast.AST | None = called_on(node, *_ADDS)
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        # total = 0.9 * total + loss, and losses[i] = loss
        again = isinstance(node.value, ast.BinOp) and any(_is(one, name) for one in _parts(node.value))
        target = node.targets[0] if again or isinstance(node.targets[0], ast.Subscript) else None
    while isinstance(target, ast.Subscript):
        target = target.value
    return target is not None and _is(target, name)


def _is(node: ast.AST, name: str) -> bool:
    """Is an expression a variable, or an attribute that is called alike: ``self.losses`` for "trainer.losses"?"""
    if isinstance(node, ast.Attribute):
        return "." in name and node.attr == name.rpartition(".")[2]
    return isinstance(node, ast.Name) and node.id == name


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what a sum, a tuple or a dictionary is made of; a call is one part."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Dict)):
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.expr):
                yield from _parts(inner)
    else:
        yield node


def without_graph(holder: GraphHolder) -> Edit | Cause | None:
    """Return the line that adds to a variable, with ``.detach()`` after each tensor as far as these are known."""
    file, line = holder.site
    if not holder.tensors:  # a function that did not run when the graphs were counted: a meter's, say
        return Cause(file, line)
    parts: list[ast.expr] = []
    for node in nodes_at(holder.site):
        if _adds(node, holder.name):
            values = node.args if isinstance(node, ast.Call) else [node.value]  # type: ignore[attr-defined]
            parts += [part for value in values for part in _parts(value)]
            if isinstance(node, ast.AugAssign) and not isinstance(node.value, (ast.BinOp, ast.Name)):
                return _detached(file, [node.value])
    return _detached(file, [one for one in parts if isinstance(one, ast.Name) and one.id in holder.tensors])


def _detached(file: str, tensors: list[ast.expr]) -> Edit | Cause | None:
    line = only(one.end_lineno or 0 for one in tensors)
    if line is None:
        return None
    text = source_line((file, line)).strip("\r\n").encode()
    for end in sorted((one.end_col_offset or 0 for one in tensors), reverse=True):  # in bytes
        text = text[:end] + b".detach()" + text[end:]
    return Edit(Cause(file, line), text.decode().strip())
