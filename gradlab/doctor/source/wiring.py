"""How parameters came to be frozen, or out of an optimizer's reach."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ..events import Site
from ..finding import Cause, Edit
from .loss_edits import imported
from .syntax import (
    FUNCTIONS,
    beside,
    called_on,
    dotted,
    function_around,
    node_place,
    nodes_at,
    nodes_in,
    own_nodes,
    reworded,
    single_or_none,
    syntax_tree,
    words_of,
)


def plain_container(files: Iterable[str], name: str) -> Edit | Cause | None:
    """Return where the list or dictionary is made that holds a layer named ``net.hids[0].weight``.

    It is the only attribute or variable of that name which is made as ``[]``, ``{}`` or filled at once. A list of
    layers that is an attribute becomes a ModuleList.
    """
    last = name.split("[")[0].split(".")[-1]
    found = {
        node_place(file, node): node
        for file, node in nodes_in(files)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, (ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.Tuple))
        for one in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if dotted(one).split(".")[-1] == last
    }
    if (place := single_or_none(found)) is None or name.endswith("]"):
        return place
    node, target = found[place], getattr(found[place], "targets", [None])[0]
    if not isinstance(node.value, (ast.List, ast.ListComp)) or not isinstance(target, ast.Attribute):
        return place
    words = node_place(place.file, node.value)
    return reworded(words, f"{'nn' if 'nn' in imported(place.file) else 'torch.nn'}.ModuleList({words_of(words)})")


def frozen_by(files: Iterable[str], parts: Iterable[str]) -> Edit | Cause | None:
    """Return what froze parameters, or failed to unfreeze them; ``parts`` are names of the modules that hold them.

    A module takes ``module.requires_grad = True`` without a word and unfreezes nothing: that counts first. Then come
    calls with one of the modules and False, as ``set_requires_grad(net_d, False)``, and the one statement that freezes.
    """
    nodes, names = list(nodes_in(files)), {part for part in parts if part}
    loops = [node for _, node in nodes if isinstance(node, ast.For)]  # over modules, as far as their words tell
    names |= {dotted(loop.target) for loop in loops if not re.search("param|weight", ast.unparse(loop.iter))} - {""}
    for finder in (_unfreezes_nothing, _freezing_call, _freezes):
        found = {node_place(file, node) for file, node in nodes if finder(node, names)}
        if finder is _unfreezes_nothing and (place := single_or_none(found)):
            return reworded(place, f"{words_of(place).partition('.requires_grad')[0]}.requires_grad_(True)")
        if found:
            return single_or_none(found)
    return None


def _sets(node: ast.AST, value: bool) -> ast.expr | None:
    """Return the x of ``x.requires_grad = value``."""
    target = node.targets[0] if isinstance(node, ast.Assign) and ast.unparse(node.value) == str(value) else None
    return target.value if isinstance(target, ast.Attribute) and target.attr == "requires_grad" else None


def _unfreezes_nothing(node: ast.AST, names: set[str]) -> bool:
    return _same(dotted(_sets(node, True)), names)


def _freezing_call(node: ast.AST, names: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    says_false = any(ast.unparse(one) == "False" for one in (*node.args, *(k.value for k in node.keywords)))
    name = dotted(node.func).split(".")[-1]
    freezes = (says_false and "grad" in name) or name.lstrip("_").startswith("freeze")
    return freezes and any(_same(dotted(one), names) for one in (*node.args, called_on(node)))


def _freezes(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Call) and called_on(node, "requires_grad_") is not None:
        return any(ast.unparse(one) == "False" for one in node.args)
    return _sets(node, False) is not None


def _same(name: str, names: set[str]) -> bool:
    """Return whether a name is one of those, or one that holds it, however each function calls it."""
    last = name.split(".")[-1]
    return bool(name) and any(last in re.split(r"[.\[]", one) for one in names)


def made_from_helper(site: Site) -> bool:
    """Return whether the line that makes an optimizer asks a function of the same file which parameters to take."""
    own = {node.name for node in ast.walk(syntax_tree(site[0])) if isinstance(node, FUNCTIONS)}
    calls = [node for node in nodes_at(site) if isinstance(node, ast.Call)]
    return any(dotted(call.func).split(".")[-1] in own for call in calls)


def remade_below(made: Site, later: Site) -> Edit | Cause:
    """Return the edit that makes an optimizer once more, below a line of the same function; or that line alone."""
    scope = function_around(made)
    made_by = [one for one in own_nodes(scope) if isinstance(one, ast.Assign) and one.lineno == made[1]]
    if not made_by or made[0] != later[0] or scope is not function_around(later):
        return Cause(*later)
    return beside(later, "below", words_of(node_place(made[0], made_by[0])))
