"""What cuts a loss off from the parameters: followed backwards through the source, from the loss to the model."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from ..events import Site
from ..finding import Cause
from .syntax import FUNCTIONS, dotted, function_around, node_place, only, own_nodes, source_line, syntax_tree

DETACHING = ("item", "detach", "numpy", "tolist", "detach_")
"""Methods of a tensor whose result is not in its graph."""
NEW_TENSORS = ("tensor", "as_tensor", "from_numpy", "Tensor", "FloatTensor")
"""Functions that make a tensor out of values, without the graph that these came from."""
_METHODS = (*DETACHING, "argmax", "argmin", "argsort", "round", "bool", "long", "int")
_FUNCTIONS = (*NEW_TENSORS, "argmax", "argmin", "array", "float", "int")
_NO_GRAD = ("no_grad", "inference_mode", "set_grad_enabled")


_MOST_STEPS = 200


def cut_before(path: Iterable[Site], after: str = "") -> Cause | None:
    """Return what cuts the graph of the loss whose ``backward()`` stands on a line; None if it is not one place.

    ``path`` is that line and those that call its function. The search starts from the names in the line, goes through
    the assignments above that made them, and into functions and methods of the same file that are called there. With
    ``after``, the name of a module, only cuts in a function that calls it count.
    """
    for site in path:
        found = list(dict.fromkeys(_Search(site[0]).from_line(site)))
        if after:
            found = [cause for cause in found if _behind(cause, after)]
        whole = [cause for cause in found if "detach" not in _words(cause)]  # detach() is often meant, for one operand
        if found:
            return only(found) or only(whole)
    return None


def cut_in_function(file: str, call: ast.Call) -> Cause | None:
    """Return what cuts the graph in a function of the same file that is called; None if it is not one place."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    found = list(dict.fromkeys(_Search(file)._called(name, call)))
    return found[0] if len(found) == 1 else None


def without_create_graph(call: ast.Call) -> bool:
    """Is it ``torch.autograd.grad(outputs, inputs)`` without ``create_graph=True``, whose result is in no graph?"""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if ast.unparse(call.func).split(".")[-1] != "grad" or (len(call.args) < 2 and "inputs" not in given):
        return False
    created = given.get("create_graph", ast.Constant(len(call.args) > 4))
    return isinstance(created, ast.Constant) and not created.value


class _Search:
    def __init__(self, file: str) -> None:
        self._file = file
        self._tree = syntax_tree(file)
        self._seen: set[ast.AST] = set()

    def from_line(self, site: Site) -> Iterator[Cause]:
        scope = function_around(site)
        if scope is None or self._tree is None:
            return
        calls = [node for node in own_nodes(scope) if isinstance(node, ast.Call) and _on(node, site[1])]
        backwards = [node for node in calls if dotted(node.func).split(".")[-1] == "backward"] or [
            node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
        ]
        names: set[str] = set()
        for node in backwards or calls:
            if isinstance(node.func, ast.Attribute) and backwards:  # loss.backward(), scaler.scale(loss).backward()
                yield from self._expression(node.func.value, scope)
                names |= _names(node.func.value)
            for argument in node.args:  # accelerator.backward(loss)
                names |= _names(argument)
        yield from self._made(scope, names, site[1])

    def _made(self, scope: ast.AST, names: set[str], line: int) -> Iterator[Cause]:
        """Yield the cuts in what the names were made of, above a line."""
        waiting = [(name, line) for name in names]
        while waiting and len(self._seen) < _MOST_STEPS:
            name, before = waiting.pop()
            for node in self._assignments(scope, name, before):
                if node in self._seen:
                    continue
                self._seen.add(node)
                yield from self._block(scope, node)
                value = node.value  # type: ignore[attr-defined]  # an assignment has a value
                if value is not None:
                    cuts = list(self._expression(value, scope))
                    yield from cuts
                    names = _names(value, cuts)  # what a cut is made of has no part in the graph
                    waiting += [(one, node.lineno) for one in names if one != name]  # type: ignore[attr-defined]

    def _assignments(self, scope: ast.AST, name: str, before: int) -> Iterator[ast.AST]:
        for node in own_nodes(scope):
            if isinstance(node, ast.Assign):
                targets = [part for target in node.targets for part in ast.walk(target)]
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
                targets = [node.target]
            else:
                continue
            if node.lineno <= before and any(dotted(target) == name for target in targets):
                yield node

    def _block(self, scope: ast.AST, node: ast.AST) -> Iterator[Cause]:
        for block in own_nodes(scope):
            if isinstance(block, ast.With) and any(inner is node for inner in ast.walk(block)):
                for item in block.items:
                    if any(word in ast.unparse(item.context_expr) for word in _NO_GRAD):
                        yield node_place(self._file, item.context_expr)

    def _expression(self, value: ast.AST, scope: ast.AST) -> Iterator[Cause]:
        """Yield the cuts in an expression, and in the functions of the file that it calls."""
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and node.attr == "data":
                yield node_place(self._file, node)
            if not isinstance(node, ast.Call):
                continue
            if without_create_graph(node):
                yield node_place(self._file, node)
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
            if (isinstance(node.func, ast.Attribute) and name in _METHODS and not node.args[1:]) or (
                name in _FUNCTIONS and node.args and not self._constant(node.args[0], scope)
            ):
                yield node_place(self._file, node)
            else:
                yield from self._called(name, scope)

    def _called(self, name: str, scope: ast.AST) -> Iterator[Cause]:
        assert self._tree is not None
        nodes = list(ast.walk(self._tree))
        wanted = [one for one in nodes if isinstance(one, FUNCTIONS) and one.name == name]
        kinds = instances(self._tree).get(name, set())
        given = not wanted and not kinds and name in _parameters(scope)  # a model: any of them
        wanted += [
            method
            for one in nodes
            if isinstance(one, ast.ClassDef) and (given or one.name in kinds)
            for method in one.body
            if isinstance(method, FUNCTIONS) and method.name in ("forward", "__call__")
        ]
        for function in wanted:
            if function in self._seen or len(self._seen) >= _MOST_STEPS:
                continue
            self._seen.add(function)
            for decorator in function.decorator_list:
                if any(word in ast.unparse(decorator) for word in _NO_GRAD):
                    yield node_place(self._file, decorator)
            for node in own_nodes(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from self._block(function, node)
                    cuts = list(self._expression(node.value, function))
                    yield from cuts
                    yield from self._made(function, _names(node.value, cuts), node.lineno)

    def _constant(self, value: ast.AST, scope: ast.AST) -> bool:
        """Is an expression made of numbers alone, or a parameter that every call in the file gives such numbers?"""
        assert self._tree is not None
        if not any(isinstance(node, (ast.Name, ast.Call, ast.Attribute)) for node in ast.walk(value)):
            return True
        names = _parameters(scope)
        if not isinstance(value, ast.Name) or value.id not in names or not isinstance(scope, FUNCTIONS):
            return False
        at = names.index(value.id)
        calls = [one for one in ast.walk(self._tree) if isinstance(one, ast.Call) and dotted(one.func) == scope.name]
        return bool(calls) and all(len(one.args) > at and self._constant(one.args[at], self._tree) for one in calls)


def instances(tree: ast.AST) -> dict[str, set[str]]:
    """Return by the last part of a name, as in ``self.name = Kind(...)``, the classes that it was made by."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = zip(target.elts, node.value.elts, strict=False) if both else [(target, node.value)]  # type: ignore[attr-defined]
            for one, value in pairs:
                if isinstance(value, ast.Call):
                    found.setdefault(dotted(one).split(".")[-1], set()).add(dotted(value.func).split(".")[-1])
    return found


def _parameters(scope: ast.AST) -> list[str]:
    return [one.arg for one in scope.args.args] if isinstance(scope, FUNCTIONS) else []


def _words(cause: Cause) -> str:
    return source_line((cause.file, cause.line))[cause.column : cause.end_column or None]


def _behind(cut: Cause, part: str) -> bool:
    """Is a cut in a function that calls a part of a model, or in a method of that part's own class?"""
    tree = syntax_tree(cut.file)
    kinds = instances(tree).get(part, set()) if tree is not None else set()
    scope = function_around((cut.file, cut.line))
    own = any(
        isinstance(one, ast.ClassDef) and one.name in kinds and one.lineno <= cut.line <= (one.end_lineno or 0)
        for one in (ast.walk(tree) if tree is not None else ())
    )
    return own or (scope is not None and any(dotted(node).split(".")[-1] == part for node in own_nodes(scope)))


def _on(node: ast.Call, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _names(value: ast.AST, cuts: Collection[Cause] = ()) -> set[str]:
    """Return the names in an expression, but for those inside a cut."""
    file = next(iter(cuts)).file if cuts else ""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.expr) and node_place(file, node) in cuts:
            continue
        found.add(dotted(node))
        waiting += ast.iter_child_nodes(node)
    return found - {""}
