"""What cuts a loss off from the parameters: followed backwards through the source, from the loss to the model."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from ..events import Site
from ..finding import Cause, Edit
from .syntax import (
    FUNCTIONS,
    called,
    called_on,
    dotted,
    function_around,
    holds,
    node_place,
    own_nodes,
    parameters,
    reworded,
    single_or_none,
    syntax_tree,
    words_of,
)

_NEW_TENSORS = ("tensor", "as_tensor", "from_numpy", "Tensor", "FloatTensor")
_METHODS = (
    *("item", "detach", "numpy", "tolist", "detach_"),
    *("argmax", "argmin", "argsort", "round", "bool", "long", "int"),
)
_FUNCTIONS = (*_NEW_TENSORS, "argmax", "argmin", "array", "float", "int")
_NO_GRAD = "no_grad|inference_mode|set_grad_enabled"
_MOST_STEPS = 200


def cut_before(path: Iterable[Site]) -> Edit | Cause | None:
    """Return what cuts the graph of the loss whose ``backward()`` stands on a line; None if it is not one place.

    ``path`` is that line and those that call its function. The search starts from the names in the line, goes through
    the assignments above that made them, and into functions and methods of the same file that are called there.
    """
    for site in path:
        if found := set(_Search(site[0]).from_line(site)):
            whole = {cause for cause in found if "detach" not in words_of(cause)}  # often meant, for one operand
            cut = single_or_none(found) or single_or_none(whole)
            edit = _without(cut) if cut is not None else None
            return cut if edit is None or found - {cut} or set(_Search(site[0], cut).from_line(site)) else edit
    return None


def _without(cut: Cause) -> Edit | Cause | None:
    """Return the edit that takes a cut out, None if it takes more than a word; a line ``x = x`` is none."""
    words = words_of(cut)
    try:
        node = ast.parse(words, mode="eval").body
    except SyntaxError:
        return None
    kept = node.value if isinstance(node, ast.Attribute) else called_on(node, "detach", "item")
    if isinstance(node, ast.Call) and called_on(node, *_NEW_TENSORS) is not None:
        kept = node.args[0] if isinstance(node.args[0], (ast.Name, ast.Call)) else None
    edit = reworded(cut, ast.unparse(kept)) if kept is not None else None
    target, _, value = edit.line.partition("  #")[0].partition(" = ") if isinstance(edit, Edit) else ("", "", "")
    return None if target == value.strip() else edit


def _without_create_graph(call: ast.Call) -> bool:
    """Recognise ``torch.autograd.grad(outputs, inputs)`` without ``create_graph=True``, whose result is in no graph."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if called(call) != "grad" or (len(call.args) < 2 and "inputs" not in given):
        return False
    created = given.get("create_graph", ast.Constant(len(call.args) > 4))
    return isinstance(created, ast.Constant) and not created.value


class _Search:
    def __init__(self, file: str, passed: Cause | None = None) -> None:
        """``passed`` is a cut that is taken for none."""
        self._file, self._passed = file, passed
        self._tree = syntax_tree(file)
        self._seen: set[ast.AST] = set()

    def from_line(self, site: Site) -> Iterator[Cause]:
        scope = function_around(site)
        calls = [node for node in own_nodes(scope) if isinstance(node, ast.Call) and holds(node, site[1])]
        backwards = [node for node in calls if called(node) == "backward"]
        names: set[str] = set()
        for node in backwards or calls:
            if backwards and (loss := called_on(node)) is not None:  # loss.backward(), scaler.scale(loss).backward()
                yield from self._expression(loss, scope)
                names |= _names(loss)
            names.update(*map(_names, node.args))  # accelerator.backward(loss)
        yield from self._made(scope, names, site[1])

    def _made(self, scope: ast.AST, names: set[str], line: int) -> Iterator[Cause]:
        """Yield the cuts in what the names were made of, above a line."""
        waiting = [(name, line) for name in names]
        while waiting and len(self._seen) < _MOST_STEPS:
            name, before = waiting.pop()
            for node, value in self._assignments(scope, name, before):
                if node in self._seen:
                    continue
                self._seen.add(node)
                cuts = [*self._block(scope, node), *self._expression(value, scope)]
                yield from cuts
                made_of = _names(value, cuts) - {name}  # what a cut is made of has no part in the graph
                waiting += [(one, node.lineno) for one in made_of]
                if cuts and isinstance(node, ast.Assign):
                    break  # what the name stood for before has no part in it, either

    def _assignments(self, scope: ast.AST, name: str, before: int) -> list[tuple[ast.stmt, ast.expr]]:
        """Return what gives a name a value above a line, with that value, the nearest first."""
        found: list[tuple[ast.stmt, ast.expr]] = []
        for node in own_nodes(scope):
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value and node.lineno <= before:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(dotted(part) == name for one in targets for part in ast.walk(one)):
                    found.append((node, node.value))
        return sorted(found, key=lambda one: -one[0].lineno)

    def _no_grad(self, words: Iterable[ast.expr]) -> Iterator[Cause]:
        return (node_place(self._file, one) for one in words if re.search(_NO_GRAD, ast.unparse(one)))

    def _block(self, scope: ast.AST, node: ast.AST) -> Iterator[Cause]:
        blocks = [one for one in own_nodes(scope) if isinstance(one, ast.With) and node in ast.walk(one)]
        return self._no_grad(item.context_expr for block in blocks for item in block.items)

    def _expression(self, value: ast.AST, scope: ast.AST) -> Iterator[Cause]:
        """Yield the cuts in an expression, and in the functions of the file that it calls."""
        if self._cuts(value, scope) and (place := node_place(self._file, value)) != self._passed:
            yield place
            return
        if isinstance(value, ast.Call):
            yield from self._called(called(value), scope)
        for part in reversed([*ast.iter_child_nodes(value)]):
            yield from self._expression(part, scope)

    def _cuts(self, node: ast.AST, scope: ast.AST) -> bool:
        """Return whether an expression gives something that is not in the graph of what it was made of."""
        if not isinstance(node, ast.Call):
            return isinstance(node, ast.Attribute) and node.attr == "data"
        name = called(node)
        if _without_create_graph(node) or (called_on(node, *_METHODS) is not None and not node.args[1:]):
            return True
        return name in _FUNCTIONS and bool(node.args) and not self._constant(node.args[0], scope)

    def _called(self, name: str, scope: ast.AST) -> Iterator[Cause]:
        nodes = list(ast.walk(self._tree))
        wanted = [one for one in nodes if isinstance(one, FUNCTIONS) and one.name == name]
        kinds = _instances(self._tree).get(name, set())
        given = not wanted and not kinds and name in parameters(scope)  # a model: any of them
        classes = [one for one in nodes if isinstance(one, ast.ClassDef) and (given or one.name in kinds)]
        methods = [one for kind in classes for one in kind.body if isinstance(one, FUNCTIONS)]
        wanted += [one for one in methods if one.name in ("forward", "__call__")]
        for function in wanted:
            if function in self._seen or len(self._seen) >= _MOST_STEPS:
                continue
            self._seen.add(function)
            yield from self._no_grad(function.decorator_list)
            for node in own_nodes(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    cuts = [*self._block(function, node), *self._expression(node.value, function)]
                    yield from cuts
                    yield from self._made(function, _names(node.value, cuts), node.lineno)

    def _constant(self, value: ast.AST, scope: ast.AST) -> bool:
        """Return whether an expression is made of numbers, or a parameter that every call in the file gives some."""
        if not any(isinstance(node, (ast.Name, ast.Call, ast.Attribute)) for node in ast.walk(value)):
            return True
        if not isinstance(value, ast.Name) or value.id not in parameters(scope) or not isinstance(scope, FUNCTIONS):
            return False
        at = parameters(scope).index(value.id)
        calls = [one for one in ast.walk(self._tree) if isinstance(one, ast.Call) and dotted(one.func) == scope.name]
        return bool(calls) and all(len(one.args) > at and self._constant(one.args[at], self._tree) for one in calls)


def _instances(tree: ast.AST) -> dict[str, set[str]]:
    """Return by the last part of a name, as in ``self.name = Kind(...)``, the classes that it was made by."""
    found: dict[str, set[str]] = {}
    assigns = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    for target, made in ((target, node.value) for node in assigns for target in node.targets):
        both = isinstance(target, ast.Tuple) and isinstance(made, ast.Tuple)
        for one, value in zip(target.elts, made.elts, strict=False) if both else [(target, made)]:  # type: ignore[attr-defined]
            if isinstance(value, ast.Call):
                found.setdefault(dotted(one).split(".")[-1], set()).add(dotted(value.func).split(".")[-1])
    return found


def _names(value: ast.AST, cuts: Collection[Cause] = ()) -> set[str]:
    """Return the names in an expression, but for those inside a cut."""
    if isinstance(value, ast.expr) and any(node_place(cut.file, value) == cut for cut in cuts):
        return set()
    return ({dotted(value)} - {""}).union(*(_names(one, cuts) for one in ast.iter_child_nodes(value)))
