"""A state that is carried from one batch to the next, tensors that are overwritten, and what a line adds to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from ..events import Site
from ..finding import Cause, Edit
from .calls import called_name
from .syntax import (
    FUNCTIONS,
    beside,
    dotted,
    function_around,
    loop_around,
    method_calls,
    node_place,
    only,
    own_nodes,
    reworded,
    syntax_tree,
    words_of,
)


def carried_state(path: Sequence[Site], files: Iterable[str], values: Mapping[str, Any]) -> Edit | Cause | None:
    """Return the line that takes a state and gives it back, as ``out, hidden = rnn(x, hidden)``.

    A ``state.detach()`` whose result is not kept comes first. The line is looked for in the loops around the lines of
    ``path``, then as an attribute, ``self.hidden``, in all files. If it is in the loop of the failed ``backward()``,
    where the variables have ``values``, the state is to be detached below that.
    """
    files = set(files)
    if dropped := {place for file in files for place in _dropped_detaches(file)}:
        return only(dropped)
    for site in path:
        loop = loop_around(site)
        found = dict(_recurrent(site[0], loop)) if loop is not None else {}
        if place := only(found):
            detached = _detached(found[place], values.get(found[place]))
            return beside(site, "below", detached) if detached and site == path[0] else place
        if found:
            return None
    trees = [(file, tree) for file in files if (tree := syntax_tree(file)) is not None]
    return only(place for file, tree in trees for place, name in _recurrent(file, tree) if "." in name)


def _detached(name: str, value: Any) -> str:
    """Return the line that detaches a state, "" if it is no tensor and no tuple of tensors."""
    if isinstance(value, Tensor):
        return f"{name} = {name}.detach()"
    plain = isinstance(value, tuple) and all(isinstance(part, Tensor) for part in value)
    return f"{name} = tuple(part.detach() for part in {name})" if plain else ""


def _dropped_detaches(file: str) -> Iterator[Cause]:
    """Yield the statements ``x.detach()`` on tensors: a method of that name in the file is a call like any other."""
    tree = syntax_tree(file)
    own = {node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS)} if tree is not None else set()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Expr) and any(call is node.value for call in method_calls(node, "detach")):
            inside = function_around((file, node.lineno))
            if "detach" not in own or (isinstance(inside, FUNCTIONS) and inside.name == "detach"):
                yield node_place(file, node)


def _recurrent(file: str, scope: ast.AST) -> Iterator[tuple[Cause, str]]:
    """Yield the calls that are given what they return, with its name."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            given = {dotted(one) for argument in node.value.args for one in ast.walk(argument)}
            taken = {dotted(one) for target in node.targets for one in ast.walk(target)}
            for name in sorted((given & taken) - {"", "self"}):
                yield node_place(file, node), name


def overwritten(files: Iterable[str], made_by: str) -> Edit | Cause | None:
    """Return the one in-place operation on a tensor that was made by an operation, such as "relu"; else the only one.

    Such are ``h *= 0.9``, ``h.relu_()`` and ``inplace=True``. Sums of numbers are none that backward() needs.
    """
    trees = {file: tree for file in set(files) if (tree := syntax_tree(file)) is not None}
    nodes = [(file, node) for file, tree in trees.items() for node in ast.walk(tree)]
    own = {node_place(file, node): node for file, node in nodes if _changes(node) and _made(file, node, made_by)}
    every = own or {node_place(file, node): node for file, node in nodes if _in_place(node)}
    place = only(every)
    return _out_of_place(place, every[place]) if place is not None else None


def _changes(node: ast.AST) -> bool:
    return isinstance(node, ast.AugAssign) or _in_place(node)


def _made(file: str, node: ast.AST, made_by: str) -> bool:
    """Was the variable that an operation changes made by a call with a word in its name, in the same function?"""
    changed = node.target if isinstance(node, ast.AugAssign) else getattr(getattr(node, "func", None), "value", None)
    scope = function_around((file, node.lineno))  # type: ignore[attr-defined]  # an operation has a line
    return bool(made_by) and any(
        isinstance(one, ast.Assign)
        and changed is not None
        and ast.unparse(one.targets[0]) == ast.unparse(changed)
        and made_by in called_name(one.value)
        for one in (own_nodes(scope) if scope is not None else ())
    )


def _out_of_place(place: Cause, node: ast.AST) -> Edit | Cause:
    """Return the edit that makes a new tensor instead."""
    words = words_of(place)
    if isinstance(node, ast.AugAssign):
        target, value = ast.unparse(node.target), ast.unparse(ast.BinOp(node.target, node.op, node.value))
        return reworded(place, f"{target} = {value}") if isinstance(node.target, ast.Name) else place
    return reworded(place, words.replace("inplace=True", "inplace=False")) if "inplace=True" in words else place


def _in_place(node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign):
        return not isinstance(node.value, ast.Constant) or isinstance(node.value.value, float)
    if not isinstance(node, ast.Call):
        return False
    if any(keyword.arg == "inplace" and ast.unparse(keyword.value) == "True" for keyword in node.keywords):
        return True
    name = called_name(node)
    return name.endswith("_") and not name.startswith("_") and name not in _HARMLESS


def given_between(scope: ast.AST, file: str, name: str, first: int, last: int) -> list[Cause]:
    """Return where a variable is given to a call between two lines of a function."""
    calls = [node for node in own_nodes(scope) if isinstance(node, ast.Call) and first <= node.lineno <= last]
    return [node_place(file, one) for call in calls for one in call.args if dotted(one) == name]


_HARMLESS = ("requires_grad_", "detach_", "retain_grad_", "clip_grad_norm_", "clip_grad_value_", "unscale_", "zero_")


def adds_to(file: str, name: str, line: int) -> int:
    """Return a line that adds to a variable or attribute of this name, 0 if there is none.

    It is looked for in the function that ``line`` is in, and then in the whole file.
    """
    tree, around = syntax_tree(file), function_around((file, line))
    if tree is None or around is None:
        return 0
    return _adds_in(around, name) or _adds_in(tree, name)


def _adds_in(tree: ast.AST, name: str) -> int:
    for node in ast.walk(tree):
        target: ast.AST | None = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
            target = node.func.value
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            # total = total + loss, and losses[i] = loss
            again = any(_named(one, name) for one in ast.walk(node.value))
            target = node.targets[0] if again or isinstance(node.targets[0], ast.Subscript) else None
        if target is not None and _named(target, name):
            return int(node.lineno)  # type: ignore[attr-defined]  # all three kinds have a line
    return 0


_ADDS = ("append", "appendleft", "add", "extend", "insert", "setdefault", "update")


def _named(node: ast.AST, name: str) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)
