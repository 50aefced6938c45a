"""A state that is carried from one batch to the next, and tensors that are overwritten."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..events import Site
from ..finding import Cause
from .syntax import FUNCTIONS, dotted, function_around, loop_around, method_calls, node_place, only, syntax_tree


def carried_state(path: Iterable[Site], files: Iterable[str]) -> Cause | None:
    """Return the line that takes a state and gives it back, as ``out, hidden = rnn(x, hidden)``.

    A ``state.detach()`` whose result is not kept comes first. The line is looked for in the loops around the lines of
    ``path``, then as an attribute, ``self.hidden``, in all files.
    """
    files = set(files)
    if dropped := list(_dropped_detaches(files)):
        return only(dropped)
    for site in path:
        loop = loop_around(site)
        found = list(_recurrent(site[0], loop)) if loop is not None else []
        if found:
            return only(found)
    trees = [(file, tree) for file in set(files) if (tree := syntax_tree(file)) is not None]
    return only(cause for file, tree in trees for cause in _recurrent(file, tree, attributes=True))


def _dropped_detaches(files: Iterable[str]) -> Iterator[Cause]:
    """Yield the statements ``x.detach()`` on tensors: a method of that name in the file is a call like any other."""
    for file in files:
        tree = syntax_tree(file)
        own = {node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS)} if tree is not None else set()
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Expr) and any(call is node.value for call in method_calls(node, "detach")):
                inside = function_around((file, node.lineno))
                if "detach" not in own or (isinstance(inside, FUNCTIONS) and inside.name == "detach"):
                    yield node_place(file, node)


def _recurrent(file: str, scope: ast.AST, *, attributes: bool = False) -> Iterator[Cause]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            given = {dotted(one) for argument in node.value.args for one in ast.walk(argument)}
            taken = {dotted(one) for target in node.targets for one in ast.walk(target)}
            both = {name for name in given & taken if name and ("." in name or not attributes) and name != "self"}
            if both:
                yield node_place(file, node)


def only_in_place(files: Iterable[str]) -> Cause | None:
    """Return the one in-place operation on a tensor in some files: ``h *= 0.9``, ``h.relu_()``, ``inplace=True``."""
    trees = [(file, tree) for file in set(files) if (tree := syntax_tree(file)) is not None]
    return only(node_place(file, node) for file, tree in trees for node in ast.walk(tree) if _in_place(node))


def _in_place(node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign):  # counters and sums of numbers are no tensors that backward() needs
        return not isinstance(node.value, ast.Constant) or isinstance(node.value.value, float)
    if not isinstance(node, ast.Call):
        return False
    name = dotted(node.func).split(".")[-1] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    if any(keyword.arg == "inplace" and ast.unparse(keyword.value) == "True" for keyword in node.keywords):
        return True
    return name.endswith("_") and not name.startswith("_") and name not in _HARMLESS


_HARMLESS = ("requires_grad_", "detach_", "retain_grad_", "clip_grad_norm_", "clip_grad_value_", "unscale_", "zero_")
