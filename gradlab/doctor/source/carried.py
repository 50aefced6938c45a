"""What is carried from batch to batch: a state, a tensor that keeps its graph; and tensors that are overwritten."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from ..events import GraphHolder, Site
from ..finding import Cause, Edit
from ..graphs.op_trace import Op
from .calls import called_name
from .syntax import (
    FUNCTIONS,
    beside,
    called_on,
    dotted,
    function_around,
    loop_around,
    node_place,
    nodes_at,
    nodes_in,
    own_nodes,
    reworded,
    single_or_none,
    source_line,
    syntax_tree,
    words_of,
)

_HARMLESS = ("requires_grad_", "detach_", "retain_grad_", "clip_grad_norm_", "clip_grad_value_", "unscale_", "zero_")


def carried_state(path: Sequence[Site], files: Iterable[str], values: Mapping[str, Any]) -> Edit | Cause | None:
    """Return the line that takes a state and gives it back, as ``out, hidden = rnn(x, hidden)``.

    A ``state.detach()`` whose result is not kept comes first. The line is looked for in the loops around the lines of
    ``path``, then as an attribute, ``self.hidden``, in all files. If it is in the loop of the failed ``backward()``,
    where the variables have ``values``, the state is to be detached below that.
    """
    if dropped := set(_dropped_detaches(files := set(files))):
        return single_or_none(dropped)
    for site in path:
        loop = loop_around(site)
        found = dict(pair for node in (ast.walk(loop) if loop else ()) for pair in _recurrent(site[0], node))
        if place := single_or_none(found):
            detached = _detached(found[place], values.get(found[place]))
            return beside(site, "below", detached) if detached and site == path[0] else place
        if found:
            return None
    found = {place: name for file, node in nodes_in(files) for place, name in _recurrent(file, node)}
    return single_or_none(place for place, name in found.items() if "." in name)


def _detached(name: str, value: Any) -> str:
    """Return the line that detaches a state, "" if it is no tensor and no tuple of tensors."""
    if isinstance(value, Tensor):
        return f"{name} = {name}.detach()"
    plain = isinstance(value, tuple) and all(isinstance(part, Tensor) for part in value)
    return f"{name} = tuple(part.detach() for part in {name})" if plain else ""


def _dropped_detaches(files: Iterable[str]) -> Iterator[Cause]:
    """Yield the statements ``x.detach()`` on tensors: a method of that name in the file is a call like any other."""
    nodes = list(nodes_in(files))
    own = {file for file, node in nodes if isinstance(node, FUNCTIONS) and node.name == "detach"}
    for file, node in nodes:
        if not isinstance(node, ast.Expr) or called_on(node.value, "detach") is None:
            continue
        if file not in own or getattr(function_around((file, node.lineno)), "name", "") == "detach":
            yield node_place(file, node)


def _recurrent(file: str, node: ast.AST) -> Iterator[tuple[Cause, str]]:
    """Yield the place and the name if a statement gives a call what it takes from it."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        given = {dotted(one) for argument in node.value.args for one in ast.walk(argument)}
        taken = {dotted(one) for target in node.targets for one in ast.walk(target)}
        yield from ((node_place(file, node), name) for name in sorted((given & taken) - {"", "self"}))


def overwritten(changes: Iterable[tuple[Op, Op]], made_by: str, shape: tuple[int, ...]) -> Edit | Cause | None:
    """Return the one in-place call on a tensor that was made by an operation, such as "relu"; else of its shape.

    changes: the calls that changed a tensor, with what had made it.
    """
    own = [op for op, before in changes if made_by and before.name.replace("_", "") == made_by.replace("_", "")]
    own = own or [op for op, before in changes if before.shape == shape and before.graph and not op.no_grad]
    site = single_or_none(op.lines[0] for op in own if op.lines)
    if site is None:
        return None
    nodes = [node for node in nodes_at(site) if _in_place(node)]
    return _out_of_place(node_place(site[0], nodes[0]), nodes[0]) if len(nodes) == 1 else Cause(*site)


def _out_of_place(place: Cause, node: ast.AST) -> Edit | Cause:
    """Return the edit that makes a new tensor instead."""
    words = words_of(place)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return reworded(place, f"{node.target.id} = {ast.unparse(ast.BinOp(node.target, node.op, node.value))}")
    return reworded(place, words.replace("inplace=True", "inplace=False")) if "inplace=True" in words else place


def _in_place(node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign):
        return True
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Subscript)
    name, given = called_name(node), getattr(node, "keywords", ())
    named = name.endswith("_") and not name.startswith("_") and name not in _HARMLESS
    return named or any(one.arg == "inplace" and ast.unparse(one.value) == "True" for one in given)


def given_between(scope: ast.AST, file: str, name: str, first: int, last: int) -> list[Cause]:
    """Return where a variable is given to a call between two lines of a function."""
    calls = [node for node in own_nodes(scope) if isinstance(node, ast.Call) and first <= node.lineno <= last]
    return [node_place(file, one) for call in calls for one in call.args if dotted(one) == name]


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
    return single_or_none(node.lineno for node in ast.walk(scope) if wanted(node)) or 0  # type: ignore[attr-defined]  # both have lines


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
    """Return whether an expression is a variable, or an attribute of its name: ``self.losses`` for "trainer.losses"."""
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
                return _with_detach(file, [node.value])
    return _with_detach(file, [one for one in parts if isinstance(one, ast.Name) and one.id in holder.tensors])


def _with_detach(file: str, tensors: list[ast.expr]) -> Edit | Cause | None:
    line = single_or_none(one.end_lineno or 0 for one in tensors)
    if line is None:
        return None
    text = source_line((file, line)).strip("\r\n").encode()
    for end in sorted((one.end_col_offset or 0 for one in tensors), reverse=True):  # in bytes
        text = text[:end] + b".detach()" + text[end:]
    return Edit(Cause(file, line), text.decode().strip())
