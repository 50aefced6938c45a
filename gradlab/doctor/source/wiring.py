"""How parameters came to be frozen, or out of an optimizer's reach."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..events import Site
from ..finding import Cause
from .syntax import FUNCTIONS, dotted, node_place, only, syntax_tree


def plain_container(files: Iterable[str], name: str) -> Cause | None:
    """Return where the list or dictionary is made that holds a layer named ``net.hids[0].weight``.

    It is the only attribute or variable of that name which is made as ``[]``, ``{}`` or filled at once.
    """
    if "[" not in name:
        return None
    last = name.split("[")[0].split(".")[-1]
    return only(
        node_place(file, node)
        for file in set(files)
        if (tree := syntax_tree(file)) is not None
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, (ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.Tuple))
        and any(
            dotted(target).split(".")[-1] == last
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        )
    )


def frozen_by(files: Iterable[str], parts: Iterable[str]) -> Cause | None:
    """Return what froze parameters, or failed to unfreeze them; ``parts`` are names of the modules that hold them.

    A module takes ``module.requires_grad = True`` without a word and unfreezes nothing: that counts first. Then come
    calls with one of the modules and False, as ``set_requires_grad(net_d, False)``, and the one statement that freezes.
    """
    trees = [(file, tree) for file in set(files) if (tree := syntax_tree(file)) is not None]
    names = {part for part in parts if part}
    for finder in (_unfreezes_nothing, _freezing_call, _freezes):
        found = [node_place(file, node) for file, tree in trees for node in ast.walk(tree) if finder(node, names)]
        if found:
            return only(found)
    return None


def _unfreezes_nothing(node: ast.AST, names: set[str]) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(target := node.targets[0], ast.Attribute)
        and target.attr == "requires_grad"
        and isinstance(node.value, ast.Constant)
        and node.value.value is True
        and _same(dotted(target.value), names)
    )


def _freezing_call(node: ast.AST, names: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    says_false = any(
        isinstance(one, ast.Constant) and one.value is False for one in (*node.args, *(k.value for k in node.keywords))
    )
    name = dotted(node.func).split(".")[-1]
    given = [dotted(one) for one in node.args]
    if isinstance(node.func, ast.Attribute):
        given.append(dotted(node.func.value))
    about = name.lstrip("_").startswith("freeze")
    return ((says_false and "grad" in name) or about) and any(_same(one, names) for one in given)


def _freezes(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        return (
            isinstance(target, ast.Attribute)
            and target.attr == "requires_grad"
            and isinstance(node.value, ast.Constant)
            and node.value.value is False
        )
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "requires_grad_"
        and any(isinstance(one, ast.Constant) and one.value is False for one in node.args)
    )


def _same(name: str, names: set[str]) -> bool:
    """Is a name one of those, or one that holds it, however each function calls it?"""
    last = name.split(".")[-1]
    return bool(name) and any(last in one.split(".") for one in names)


def made_from_helper(site: Site) -> bool:
    """Does the line that makes an optimizer ask a function of the same file which parameters to take?"""
    tree = syntax_tree(site[0])
    own = {node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS)} if tree is not None else set()
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    return any(call.lineno == site[1] and dotted(call.func).split(".")[-1] in own for call in calls)
