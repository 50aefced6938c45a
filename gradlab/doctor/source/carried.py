"""Searches for states carried between batches, stored tensors that keep their graph, and in-place changes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from ..events import GraphHolder, Site
from ..finding import Cause, Edit
from ..graphs.op_trace import Op
from . import syntax
from .syntax import called_on, dotted, function_around, node_place, nodes_at, reworded, single_or_none

_ADDS = ("append", "appendleft", "add", "extend", "insert", "setdefault", "update")


def carried_state(path: Sequence[Site], files: Iterable[str], values: Mapping[str, Any]) -> Edit | Cause | None:
    """Return the location of the only ``state.detach()`` whose result is not used.

    If there is no such call, return the edit or location for the only line in a loop around ``path`` that passes a
    state, such as ``hidden``, to a call and assigns it again, or for the only such line with an attribute. Return None
    if several calls or lines qualify. ``values`` are the variables at ``path[0]``.
    """
    nodes = list(syntax.nodes_in(files))
    detach_files = {file for file, node in nodes if isinstance(node, syntax.FUNCTIONS) and node.name == "detach"}
    dropped = {
        node_place(file, node)
        for file, node in nodes
        if isinstance(node, ast.Expr) and called_on(node.value, "detach") is not None
        if file not in detach_files or getattr(function_around((file, node.lineno)), "name", "") == "detach"
    }
    if dropped:
        return single_or_none(dropped)
    for site in path:
        loop = syntax.loop_around(site)
        carriers = {node_place(site[0], node): name for node in ast.walk(loop or ast.Pass()) for name in _carried(node)}
        if cause := single_or_none(carriers):
            detached = _detached(carriers[cause], values.get(carriers[cause]))
            return syntax.beside(site, "below", detached) if detached and site == path[0] else cause
        if carriers:
            return None
    return single_or_none(node_place(file, node) for file, node in nodes if any("." in name for name in _carried(node)))


def _carried(node: ast.AST) -> set[str]:
    """Return the names that an assignment passes to a call and assigns again, or an empty set for other nodes."""
    if not isinstance(node, ast.Assign):
        return set()
    calls = [inner for inner in ast.walk(node.value) if isinstance(inner, ast.Call)]
    inputs = {name for call in calls for value in syntax.arguments(call) for name in syntax.names_in(value)}
    return inputs & {name for target in node.targets for name in syntax.names_in(target)} - {"self"}


def _detached(name: str, value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{name} = {name}.detach()"
    plain = isinstance(value, tuple) and all(isinstance(part, Tensor) for part in value)
    return f"{name} = tuple(part.detach() for part in {name})" if plain else ""


def overwritten(changes: Iterable[tuple[Op, Op]], made_by: str, shape: tuple[int, ...]) -> Edit | Cause | None:
    """Return the edit, location or None for the only in-place change to a ``made_by`` result or a ``shape`` tensor."""
    ops = [op for op, before in changes if made_by and before.name.replace("_", "") == made_by.replace("_", "")]
    ops = ops or [op for op, before in changes if before.shape == shape and before.graph and not op.no_grad]
    if (site := single_or_none(op.lines[0] for op in ops if op.lines)) is None:
        return None
    nodes = [node for node in nodes_at(site) if any(syntax.calls_op(node, op.name) for op in ops)]
    if len(nodes) != 1:
        return Cause(*site)
    cause, node = node_place(site[0], nodes[0]), nodes[0]
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return reworded(cause, f"{node.target.id} = {ast.unparse(ast.BinOp(node.target, node.op, node.value))}")
    return cause


def given_between(scope: ast.AST, file: str, name: str, first: int, last: int) -> list[Cause]:
    """Return locations of ``name`` as a positional argument of calls in ``scope`` on lines ``first`` to ``last``."""
    calls = [node for node in syntax.own_nodes(scope) if isinstance(node, ast.Call) and first <= node.lineno <= last]
    return [node_place(file, argument) for call in calls for argument in call.args if dotted(argument) == name]


def only_line(wanted: Callable[[ast.AST, str], bool], file: str, name: str, line: int) -> int:
    """Return the only line in the function (for attributes, in the file) whose node satisfies ``wanted``, or 0."""
    scope = syntax.syntax_tree(file) if "." in name else function_around((file, line))
    return single_or_none(node.lineno for node in ast.walk(scope) if wanted(node, name)) or 0  # type: ignore[attr-defined]


def carries(node: ast.AST, name: str) -> bool:
    """Return whether a statement passes ``name`` to a call and reassigns it: ``out, hidden = rnn(x, hidden)``."""
    return any(_same(carried, name) for carried in _carried(node))


def adds(node: ast.AST, name: str) -> bool:
    """Return whether a node adds to ``name``, as ``losses.append(loss)`` and ``total += loss`` do."""
    target: ast.AST | None = called_on(node, *_ADDS)
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        # the forms total = 0.9 * total + loss and losses[i] = loss
        again = isinstance(node.value, ast.BinOp) and any(_same(dotted(part), name) for part in _parts(node.value))
        target = node.targets[0] if again or isinstance(node.targets[0], ast.Subscript) else None
    while isinstance(target, ast.Subscript):
        target = target.value
    return _same(dotted(target), name)


def _same(other: str, name: str) -> bool:
    """Return whether two names are equal or end in the same attribute, as "self.losses" and "trainer.losses" do."""
    return other == name or ("." in other and "." in name and other.rpartition(".")[2] == name.rpartition(".")[2])


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the operands of an operation or elements of a container, recursively, or the node if it is neither."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Dict)):
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.expr):
                yield from _parts(inner)
    else:
        yield node


def without_graph(holder: GraphHolder) -> Edit | Cause | None:
    """Return the edit that adds ``.detach()`` to the tensors in a holder's line, the location of the line, or None."""
    if not holder.tensors:  # the line's function, such as a meter's update(), was not running when graphs were counted
        return Cause(*holder.site)
    tensors: list[ast.expr] = []
    for node in nodes_at(holder.site):
        if adds(node, holder.name):
            if isinstance(node, ast.AugAssign) and not isinstance(node.value, (ast.BinOp, ast.Name)):
                tensors = [node.value]
                break
            values = node.args if isinstance(node, ast.Call) else [node.value]  # type: ignore[attr-defined]
            parts = [part for value in values for part in _parts(value)]
            tensors += [part for part in parts if isinstance(part, ast.Name) and part.id in holder.tensors]
    causes = [node_place(holder.site[0], tensor) for tensor in tensors]
    return syntax.all_reworded({cause: f"{syntax.text_of(cause)}.detach()" for cause in causes}) if causes else None
