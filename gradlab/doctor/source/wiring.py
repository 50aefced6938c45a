"""How parameters came to be frozen, or out of an optimizer's reach."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ..events import Site
from ..finding import Cause, Edit
from . import syntax
from .syntax import called, dotted, node_place, nodes_in, reworded, single_or_none, words_of


def plain_container(files: Iterable[str], name: str) -> Edit | Cause | None:
    """Return the only place that makes a list or dictionary for a layer named ``net.hids[0].weight``."""
    last = name.split("[")[0].split(".")[-1]
    found = {
        node_place(file, node): (node, target)
        for file, node in nodes_in(files)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, (ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.Tuple))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if dotted(target).split(".")[-1] == last
    }
    if (place := single_or_none(found)) is None or name.endswith("]"):
        return place
    (node, target), package = found[place], "nn" if "nn" in syntax.imported(place.file) else "torch.nn"
    if not isinstance(node.value, (ast.List, ast.ListComp)) or not isinstance(target, ast.Attribute):
        return place
    words = node_place(place.file, node.value)
    return reworded(words, f"{package}.ModuleList({words_of(words)})")


def frozen_by(files: Iterable[str], parts: Iterable[str]) -> Edit | Cause | None:
    """Return what froze parameters, or failed to unfreeze them; ``parts`` are names of the modules that hold them."""
    nodes, names = list(nodes_in(files)), {part for part in parts if part}
    loops = [node for _, node in nodes if isinstance(node, ast.For)]  # over modules, as far as their words tell
    names |= {dotted(loop.target) for loop in loops if not re.search("param|weight", ast.unparse(loop.iter))} - {""}
    kinds: list[list[Cause]] = [[], [], []]
    for file, node in nodes:
        if (kind := _freezes(node, names)) is not None:
            kinds[kind].append(node_place(file, node))
    if (useless := single_or_none(kinds[0])) is not None:
        return reworded(useless, f"{words_of(useless).partition('.requires_grad')[0]}.requires_grad_(True)")
    return single_or_none(next((found for found in kinds if found), ()))


def _freezes(node: ast.AST, names: set[str]) -> int | None:
    """Return 0 for ``module.requires_grad = True``, which does nothing, 1 for a call with a module, 2 for the rest."""
    if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Attribute):
        sets = ast.unparse(node.value) if target.attr == "requires_grad" else ""
        return 2 if sets == "False" else 0 if sets == "True" and _is_one(target.value, names) else None
    if not isinstance(node, ast.Call):
        return None
    given, owner = syntax.arguments(node), syntax.called_on(node)
    says_false = any(ast.unparse(one) == "False" for one in given)
    freezes = (says_false and "grad" in called(node)) or called(node).lstrip("_").startswith("freeze")
    if freezes and any(_is_one(one, names) for one in (*given, owner)):
        return 1
    return 2 if says_false and owner is not None and called(node) == "requires_grad_" else None


def _is_one(node: ast.AST | None, names: set[str]) -> bool:
    """Return whether an expression has one of the names, or the name of what holds it, however it is written."""
    last = dotted(node).split(".")[-1]
    return bool(last) and any(last in re.split(r"[.\[]", one) for one in names)


def made_from_helper(site: Site) -> bool:
    """Return whether the line that makes an optimizer asks a function of the same file which parameters to take."""
    own = {node.name for node in ast.walk(syntax.syntax_tree(site[0])) if isinstance(node, syntax.FUNCTIONS)}
    return any(called(node) in own for node in syntax.nodes_at(site))


def remade_below(made: Site, later: Site) -> Edit | Cause:
    """Return the edit that makes an optimizer once more, below a line of the same function; or that line alone."""
    assigns = [one for one in syntax.statements_around(made, ast.Assign) if one.lineno == made[1]]
    if not assigns or made[0] != later[0] or syntax.function_around(made) is not syntax.function_around(later):
        return Cause(*later)
    return syntax.beside(later, "below", words_of(node_place(made[0], assigns[0])))
