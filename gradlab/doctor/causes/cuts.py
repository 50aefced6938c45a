"""What cuts a loss off from the parameters: followed backwards through the source, from the loss to the model."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..events import Site
from ..finding import Cause
from ..source_search import syntax_tree
from .syntax import FUNCTIONS, dotted, function_around, own_nodes, place

_METHODS = (
    "detach",
    "detach_",
    "item",
    "numpy",
    "tolist",
    "argmax",
    "argmin",
    "argsort",
    "round",
    "bool",
    "long",
    "int",
)
_FUNCTIONS = ("tensor", "Tensor", "FloatTensor", "as_tensor", "from_numpy", "argmax", "argmin", "array", "float", "int")
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
            found = [cause for cause in found if _mentions(function_around((cause.file, cause.line)), after)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def cut_in_function(file: str, call: ast.Call) -> Cause | None:
    """Return what cuts the graph in a function of the same file that is called; None if it is not one place."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    found = list(dict.fromkeys(_Search(file).called(name)))
    return found[0] if len(found) == 1 else None


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
                yield from self._expression(node.func.value)
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
                    cuts = list(self._expression(value))
                    yield from cuts
                    if cuts:  # what is above has no part in the graph
                        continue
                    waiting += [(one, node.lineno) for one in _names(value) if one != name]  # type: ignore[attr-defined]

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
                        yield place(self._file, item.context_expr)

    def _expression(self, value: ast.AST) -> Iterator[Cause]:
        """Yield the cuts in an expression, and in the functions of the file that it calls."""
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and node.attr == "data":
                yield place(self._file, node)
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
            if (isinstance(node.func, ast.Attribute) and name in _METHODS and not node.args[1:]) or (
                name in _FUNCTIONS and node.args and not _constant(node.args[0])
            ):
                yield place(self._file, node)
            else:
                yield from self.called(name)

    def called(self, name: str) -> Iterator[Cause]:
        assert self._tree is not None
        wanted = [one for one in ast.walk(self._tree) if isinstance(one, FUNCTIONS) and one.name == name]
        wanted += [
            method
            for one in ast.walk(self._tree)
            if isinstance(one, ast.ClassDef) and self._instance(name, one.name)
            for method in one.body
            if isinstance(method, FUNCTIONS) and method.name in ("forward", "__call__")
        ]
        for function in wanted:
            if function in self._seen or len(self._seen) >= _MOST_STEPS:
                continue
            self._seen.add(function)
            for decorator in function.decorator_list:
                if any(word in ast.unparse(decorator) for word in _NO_GRAD):
                    yield place(self._file, decorator)
            for node in own_nodes(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from self._block(function, node)
                    cuts = list(self._expression(node.value))
                    yield from cuts or self._made(function, _names(node.value), node.lineno)

    def _instance(self, name: str, kind: str) -> bool:
        """Is ``name = Kind(...)`` written somewhere in the file, or ``self.name = Kind(...)``?"""
        assert self._tree is not None
        return any(
            isinstance(one, ast.Assign)
            and isinstance(one.value, ast.Call)
            and dotted(one.value.func).split(".")[-1] == kind
            and any(dotted(target).split(".")[-1] == name for target in one.targets)
            for one in ast.walk(self._tree)
        )


def _mentions(scope: ast.AST | None, name: str) -> bool:
    return scope is not None and any(dotted(node).split(".")[-1] == name for node in own_nodes(scope))


def _on(node: ast.Call, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _names(value: ast.AST) -> set[str]:
    found = {dotted(node) for node in ast.walk(value) if isinstance(node, (ast.Name, ast.Attribute))}
    return {name for name in found if name}


def _constant(value: ast.AST) -> bool:
    """Is an expression made of numbers alone?"""
    return not any(isinstance(node, (ast.Name, ast.Call)) for node in ast.walk(value))
