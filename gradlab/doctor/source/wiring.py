"""Searches for lines that froze parameters, that keep layers in a plain list or dict, or that make an optimizer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ..events import Site
from ..finding import Cause, Edit
from . import syntax
from .syntax import called, dotted, node_place, nodes_in, reworded, single_or_none, text_of


def plain_container(files: Iterable[str], name: str) -> Edit | Cause | None:
    """Return the edit or location for the only list or dict that holds ``name`` ("net.hids[0].weight"), or None."""
    last = name.split("[")[0].split(".")[-1]
    containers = {
        node_place(file, node): (node, target)
        for file, node in nodes_in(files)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, (ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.Tuple))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if dotted(target).split(".")[-1] == last
    }
    if (cause := single_or_none(containers)) is None or name.endswith("]"):
        return cause
    (node, target), package = containers[cause], "nn" if "nn" in syntax.imported(cause.file) else "torch.nn"
    if not isinstance(node.value, (ast.List, ast.ListComp)) or not isinstance(target, ast.Attribute):
        return cause
    value = node_place(cause.file, node.value)
    return reworded(value, f"{package}.ModuleList({text_of(value)})")


def frozen_by(files: Iterable[str], parts: Iterable[str]) -> Edit | Cause | None:
    """Return the edit of a line that failed to unfreeze ``parts``, the location that has frozen them, or None."""
    nodes, names = list(nodes_in(files)), {part for part in parts if part}
    loops = [node for _, node in nodes if isinstance(node, ast.For)]  # loop variables may name modules
    names |= {dotted(loop.target) for loop in loops if not re.search("param|weight", ast.unparse(loop.iter))} - {""}
    kinds: list[list[Cause]] = [[], [], []]
    for file, node in nodes:
        if (kind := _freezes(node, names)) is not None:
            kinds[kind].append(node_place(file, node))
    if (useless := single_or_none(kinds[0])) is not None:
        return reworded(useless, f"{text_of(useless).partition('.requires_grad')[0]}.requires_grad_(True)")
    return single_or_none(next((causes for causes in kinds if causes), ()))


def _freezes(node: ast.AST, names: set[str]) -> int | None:
    """Return 0 for ``net.requires_grad = True``, 1 for a call that freezes a module, 2 for other freezing, or None."""
    if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Attribute):
        sets = ast.unparse(node.value) if target.attr == "requires_grad" else ""
        return 2 if sets == "False" else 0 if sets == "True" and _is_named_by(target.value, names) else None
    if not isinstance(node, ast.Call):
        return None
    arguments, owner = syntax.arguments(node), syntax.called_on(node)
    passes_false = any(ast.unparse(argument) == "False" for argument in arguments)
    freezes = (passes_false and "grad" in called(node)) or called(node).lstrip("_").startswith("freeze")
    if freezes and any(_is_named_by(argument, names) for argument in (*arguments, owner)):
        return 1
    return 2 if passes_false and owner is not None and called(node) == "requires_grad_" else None


def _is_named_by(node: ast.AST | None, names: set[str]) -> bool:
    """Return whether the last part of a dotted expression is a part of one of ``names``."""
    last = dotted(node).split(".")[-1]
    return bool(last) and any(last in re.split(r"[.\[]", name) for name in names)


def made_from_helper(site: Site) -> bool:
    """Return whether the line that makes an optimizer calls a function defined in the same file."""
    functions = {node.name for node in ast.walk(syntax.syntax_tree(site[0])) if isinstance(node, syntax.FUNCTIONS)}
    return any(called(node) in functions for node in syntax.nodes_at(site))


def remade_below(creation: Site, later: Site) -> Edit | Cause:
    """Return the edit that repeats, below ``later``, the assignment that starts at ``creation``.

    Return only the location of ``later`` if no assignment starts at ``creation`` or ``later`` is in another function.
    """
    assigns = [assign for assign in syntax.statements_around(creation, ast.Assign) if assign.lineno == creation[1]]
    if not assigns or creation[0] != later[0] or syntax.function_around(creation) is not syntax.function_around(later):
        return Cause(*later)
    return syntax.beside(later, "below", text_of(node_place(creation[0], assigns[0])))
