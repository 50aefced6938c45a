"""Dependencies between the cells of a notebook, from the names that they bind and read."""

from __future__ import annotations

import ast
from collections.abc import Sequence


def needed_cells(sources: Sequence[str], wanted: Sequence[int]) -> list[int]:
    """Return the sorted indices of the cells to run so that the wanted cells have the same outputs as in the notebook.

    A cell above the last wanted cell is needed if it binds a name that a needed cell reads, or if it calls a method on
    that name (``lab.run(...)``). Cells that contain only imports and calls such as ``torch.manual_seed(0)`` are always
    needed, because no name shows that other cells depend on them.
    """
    parsed = enumerate(map(_parse, sources[: max(wanted, default=-1) + 1]))
    trees = {index: tree for index, tree in parsed if tree is not None}
    needed = {index for index, tree in trees.items() if index in wanted or _is_setup(tree)}
    is_growing = True
    while is_growing:  # repeat, because a newly needed cell may read names that a later cell binds
        names = {name for index in needed for name in _read_names(trees[index])}
        more = {index for index, tree in trees.items() if names & (_bound_names(tree) | _receivers(tree))}
        is_growing, needed = not more <= needed, needed | more
    return sorted(needed)


def _parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a cell, or None if the cell is not Python, for example because of a ``%`` command."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return None


def _is_setup(tree: ast.Module) -> bool:
    """Return whether a cell contains only imports and calls to PyTorch's functions."""
    return all(
        isinstance(each, (ast.Import, ast.ImportFrom))
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and _root_name(each.value.func) == "torch")
        for each in tree.body
    )


def _bound_names(tree: ast.Module) -> set[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return names


def _receivers(tree: ast.Module) -> set[str]:
    """Return the names on which a top-level statement calls a method, such as "lab" for ``lab.run(5)``."""
    calls = (each.value for each in tree.body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call))
    return {_root_name(call.func) for call in calls if isinstance(call.func, ast.Attribute)}


def _read_names(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _root_name(node: ast.expr) -> str:
    """Return the name that an expression begins with, such as "a" for ``a.b(c).d``, or "" if there is none."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return ""
    return node.id
