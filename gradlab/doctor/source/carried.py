"""What is carried from batch to batch: a state, a tensor that keeps its graph; and tensors that are overwritten."""

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
    """Return a ``state.detach()`` that is not kept, or the line that takes a state and gives it back.

    That is in the loops around the lines of ``path``, where the variables have ``values``, or in ``self.hidden``.
    """
    nodes = list(syntax.nodes_in(files))
    own = {file for file, node in nodes if isinstance(node, syntax.FUNCTIONS) and node.name == "detach"}
    dropped = {
        node_place(file, node)
        for file, node in nodes
        if isinstance(node, ast.Expr) and called_on(node.value, "detach") is not None
        if file not in own or getattr(function_around((file, node.lineno)), "name", "") == "detach"
    }
    if dropped:
        return single_or_none(dropped)
    for site in path:
        loop = syntax.loop_around(site)
        found = {node_place(site[0], node): name for node in ast.walk(loop or ast.Pass()) for name in _carried(node)}
        if place := single_or_none(found):
            detached = _detached(found[place], values.get(found[place]))
            return syntax.beside(site, "below", detached) if detached and site == path[0] else place
        if found:
            return None
    return single_or_none(node_place(file, node) for file, node in nodes if any("." in name for name in _carried(node)))


def _carried(node: ast.AST) -> set[str]:
    """Return the names that a statement gives to a call and takes from it."""
    if not isinstance(node, ast.Assign):
        return set()
    calls = [one for one in ast.walk(node.value) if isinstance(one, ast.Call)]
    given = {name for call in calls for value in syntax.arguments(call) for name in syntax.names_in(value)}
    return given & {name for target in node.targets for name in syntax.names_in(target)} - {"self"}


def _detached(name: str, value: Any) -> str:
    """Return the line that detaches a state, "" if it is no tensor and no tuple of tensors."""
    if isinstance(value, Tensor):
        return f"{name} = {name}.detach()"
    plain = isinstance(value, tuple) and all(isinstance(part, Tensor) for part in value)
    return f"{name} = tuple(part.detach() for part in {name})" if plain else ""


def overwritten(changes: Iterable[tuple[Op, Op]], made_by: str, shape: tuple[int, ...]) -> Edit | Cause | None:
    """Return the one change in place of what an operation, such as "relu", made, or of a tensor of its shape."""
    own = [op for op, before in changes if made_by and before.name.replace("_", "") == made_by.replace("_", "")]
    own = own or [op for op, before in changes if before.shape == shape and before.graph and not op.no_grad]
    if (site := single_or_none(op.lines[0] for op in own if op.lines)) is None:
        return None
    nodes = [node for node in nodes_at(site) if any(syntax.calls_op(node, op.name) for op in own)]
    if len(nodes) != 1:
        return Cause(*site)
    place, node = node_place(site[0], nodes[0]), nodes[0]
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return reworded(place, f"{node.target.id} = {ast.unparse(ast.BinOp(node.target, node.op, node.value))}")
    return place


def given_between(scope: ast.AST, file: str, name: str, first: int, last: int) -> list[Cause]:
    """Return where a variable is given to a call between two lines of a function."""
    calls = [node for node in syntax.own_nodes(scope) if isinstance(node, ast.Call) and first <= node.lineno <= last]
    return [node_place(file, one) for call in calls for one in call.args if dotted(one) == name]


def only_line(wanted: Callable[[ast.AST, str], bool], file: str, name: str, line: int) -> int:
    """Return the only line that does something to a variable of the function around a line, or an attribute; else 0."""
    scope = syntax.syntax_tree(file) if "." in name else function_around((file, line))
    return single_or_none(node.lineno for node in ast.walk(scope) if wanted(node, name)) or 0  # type: ignore[attr-defined]


def carries(node: ast.AST, name: str) -> bool:
    """Return whether a statement takes a state and gives it back, as ``out, hidden = rnn(x, hidden)``."""
    return any(_same(one, name) for one in _carried(node))


def adds(node: ast.AST, name: str) -> bool:
    """Return whether an expression or a statement adds to a variable."""
    target: ast.AST | None = called_on(node, *_ADDS)
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        # total = 0.9 * total + loss, and losses[i] = loss
        again = isinstance(node.value, ast.BinOp) and any(_same(dotted(one), name) for one in _parts(node.value))
        target = node.targets[0] if again or isinstance(node.targets[0], ast.Subscript) else None
    while isinstance(target, ast.Subscript):
        target = target.value
    return _same(dotted(target), name)


def _same(one: str, name: str) -> bool:
    """Return whether a name is that of a variable, or of its attribute: "self.losses" for "trainer.losses"."""
    return one == name or ("." in one and "." in name and one.rpartition(".")[2] == name.rpartition(".")[2])


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
    if not holder.tensors:  # a function that did not run when the graphs were counted: a meter's, say
        return Cause(*holder.site)
    tensors: list[ast.expr] = []
    for node in nodes_at(holder.site):
        if adds(node, holder.name):
            if isinstance(node, ast.AugAssign) and not isinstance(node.value, (ast.BinOp, ast.Name)):
                tensors = [node.value]
                break
            values = node.args if isinstance(node, ast.Call) else [node.value]  # type: ignore[attr-defined]
            parts = [part for value in values for part in _parts(value)]
            tensors += [one for one in parts if isinstance(one, ast.Name) and one.id in holder.tensors]
    places = [node_place(holder.site[0], one) for one in tensors]
    return syntax.all_reworded({one: f"{syntax.words_of(one)}.detach()" for one in places}) if places else None
