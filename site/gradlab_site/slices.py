"""Which cells of a notebook have to run for one of them to be seen: those that it needs, and those that these need."""

from __future__ import annotations

import ast
from collections.abc import Sequence


def needed_cells(sources: Sequence[str], wanted: Sequence[int]) -> list[int]:
    """Return the indices of the cells to run, in order, so that the wanted ones show what they show in the notebook.

    A cell above the last of them is needed if it binds a name that a needed one reads, or calls something on such a
    name as a statement of its own (``lab.run(...)``). A cell that only imports or sets PyTorch up
    (``torch.manual_seed(0)``) always is, because what it does to the process cannot be seen in names.
    """
    trees = {at: tree for at in range(max(wanted, default=-1) + 1) if (tree := _parsed(sources[at])) is not None}
    kept = {at for at, tree in trees.items() if at in wanted or _sets_up(tree)}
    grown = True
    while grown:  # a function may call one that a cell below it defines
        names = {name for at in kept for name in _read(trees[at])}
        more = {at for at, tree in trees.items() if names & (_bound(tree) | _acted_on(tree))}
        grown, kept = not more <= kept, kept | more
    return sorted(kept)


def _parsed(source: str) -> ast.Module | None:
    """Return a cell as a tree, None for a command of IPython."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return None


def _sets_up(tree: ast.Module) -> bool:
    """Return whether a cell does nothing but import and call functions of torch."""
    return all(
        isinstance(each, (ast.Import, ast.ImportFrom))
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and _root(each.value.func) == "torch")
        for each in tree.body
    )


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that a cell gives to something."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return names


def _acted_on(tree: ast.Module) -> set[str]:
    """Return the names on which a statement calls a method."""
    calls = (each.value for each in tree.body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call))
    return {_root(call.func) for call in calls if isinstance(call.func, ast.Attribute)}


def _read(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _root(node: ast.expr) -> str:
    """Return the name at which ``a.b(c).d`` begins, "" where it begins with no name."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return ""
    return node.id
