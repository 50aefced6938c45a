"""Terms of a loss that were cut off from the model: read from the line of the backward pass and its variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FrameType
from typing import Any

from torch import Tensor, nn

from .callsite import variables
from .causes.syntax import function_around, node_place
from .events import LossFlaw

_CUTS = ("item", "detach", "numpy", "tolist", "detach_")
_NEW = ("tensor", "as_tensor", "from_numpy", "Tensor", "FloatTensor")
_MISSING = object()
_DEEP = 4  # names of sums in sums


def find_cut_term(frame: FrameType) -> LossFlaw | None:
    """Return the added term that needs no gradient although it was computed from what does, None if there is none."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    function = function_around((file, line))
    if function is None:
        return None
    scope = _Scope(function, frame)
    loss = _loss_of(function, line)
    terms = list(_terms(loss, scope)) if loss is not None else []
    if len(terms) < 2 or not any(scope.needs_grad(term) for term in terms):
        return None
    spelled = {ast.dump(term) for term in terms}
    if any(
        (source := _cuts(factor)) is not None and ast.dump(source) in spelled
        for term in terms
        for factor in _factors(term)
    ):
        return None  # a - a.detach() + b.detach(): a value is exchanged on purpose
    for term in terms:
        if scope.needs_grad(term):
            continue
        for factor in _factors(term):
            if (cut := scope.cut_in(factor, terms)) is not None:
                return LossFlaw("cut-term", f"`{ast.unparse(term)[:60]}`", cut=node_place(file, cut))
    return None


def _loss_of(function: ast.AST, line: int) -> ast.expr | None:
    """Return what ``backward`` is called on, or is given, in a line."""
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and "backward" in node.func.attr
            and node.lineno <= line <= (node.end_lineno or 0)
        ):
            return _unwrapped(node.args[0] if node.args else node.func.value)
    return None


def _unwrapped(value: ast.expr) -> ast.expr:
    """Take off ``scaler.scale(...)`` and a division by the number of micro-batches."""
    while True:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "scale":
            value = value.args[0] if value.args else value.func.value
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
            value = value.left
        else:
            return value


def _terms(value: ast.expr, scope: _Scope, within: tuple[str, ...] = ()) -> Iterator[ast.expr]:
    """Yield what is added up in an expression, and in the assignments of a name."""
    value = _unwrapped(value)
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        yield from _terms(value.left, scope, within)
        yield from _terms(value.right, scope, within)
    elif isinstance(value, ast.Name) and value.id in within:
        return  # loss = loss + more
    elif isinstance(value, ast.Name) and len(within) < _DEEP and (sums := scope.sums(value.id)):
        for one in sums:
            yield from _terms(one, scope, (*within, value.id))
    else:
        yield value


def _factors(term: ast.expr) -> Iterator[ast.expr]:
    if isinstance(term, ast.BinOp) and isinstance(term.op, (ast.Mult, ast.Div)):
        yield from _factors(term.left)
        yield from _factors(term.right)
    else:
        yield term


class _Scope:
    """The assignments of a function, and the values that its names have now."""

    def __init__(self, function: ast.AST, frame: FrameType) -> None:
        self._values = {**frame.f_globals, **variables(frame)}
        self._assigned: dict[str, list[tuple[ast.expr, bool, bool]]] = {}  # name -> value, added to it?, no_grad?
        self._read(function, no_grad=False)

    def _read(self, node: ast.AST, *, no_grad: bool) -> None:
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
                self._assigned.setdefault(one.targets[0].id, []).append((one.value, False, no_grad))
            elif isinstance(one, ast.AugAssign) and isinstance(one.op, (ast.Add, ast.Sub)):
                name = one.target.id if isinstance(one.target, ast.Name) else ""
                self._assigned.setdefault(name, []).append((one.value, True, no_grad))
            inner = no_grad or (isinstance(one, ast.With) and "no_grad" in ast.unparse(one.items[0]))
            if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                self._read(one, no_grad=inner)

    def sums(self, name: str) -> list[ast.expr]:
        """Return what is added up in a name: its one sum, or its one start and all that is added to it."""
        assigned = self._assigned.get(name, [])
        more = [value for value, added, _ in assigned if added or _adds_itself(value, name)]
        starts = [value for value, _, _ in assigned if value not in more]
        if len(starts) != 1 or not isinstance(self._values.get(name), Tensor):
            return []
        return [*starts, *more] if more or _is_sum(starts[0]) else []

    def needs_grad(self, value: ast.expr) -> bool:
        """Does an expression have something in it that requires a gradient, and that nothing cuts off?"""
        if isinstance(value, (ast.Name, ast.Attribute)):
            known = self.value(value)
            return isinstance(known, Tensor) and known.requires_grad
        if _cuts(value):
            return False
        if isinstance(value, ast.Call) and not self._plain_function(value):
            return True  # what it returns is not known
        return any(self.needs_grad(one) for one in ast.iter_child_nodes(value) if isinstance(one, ast.expr))

    def _plain_function(self, value: ast.Call) -> bool:
        return isinstance(value.func, ast.Name) and value.func.id in ("float", "int", "abs", "max", "min")

    def value(self, node: ast.expr) -> Any:
        """Return the value of a name, or of an attribute that is stored in an object, without running any code."""
        if isinstance(node, ast.Name):
            return self._values.get(node.id, _MISSING)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, nn.Module):
                for store in ("_parameters", "_buffers", "_modules"):
                    if node.attr in owner.__dict__.get(store, {}):
                        return owner.__dict__[store][node.attr]
            return getattr(owner, "__dict__", {}).get(node.attr, _MISSING)
        return _MISSING

    def learns(self, value: ast.AST) -> bool:
        """Does an expression use a tensor that requires a gradient, or a module that has parameters that do?"""
        for one in ast.walk(value):
            known = self.value(one) if isinstance(one, (ast.Name, ast.Attribute)) else _MISSING
            if isinstance(known, Tensor) and known.requires_grad:
                return True
            if isinstance(known, nn.Module) and any(p.requires_grad for p in known.parameters()):
                return True
        return False

    def cut_in(self, factor: ast.expr, terms: list[ast.expr]) -> ast.expr | None:
        """Return the words that cut a factor off from the model, None if nothing shows that they do."""
        if isinstance(factor, ast.Name):
            known = self._values.get(factor.id)
            if not hasattr(known, "__float__") or (isinstance(known, Tensor) and known.requires_grad):
                return None
            for value, _, no_grad in self._assigned.get(factor.id, []):
                if _straight_through(value):
                    return None
                if no_grad and isinstance(value, (ast.Call, ast.BinOp)) and self.learns(value):
                    return value
                if (cut := self._cut_of(value)) is not None:
                    return cut
            return None
        return None if _straight_through(factor) else self._cut_of(factor)

    def _cut_of(self, value: ast.expr) -> ast.expr | None:
        for factor in _factors(_unwrapped(value)):
            source = _cuts(factor)
            if source is not None and self.learns(source):
                return factor
        return None


def _cuts(value: ast.expr) -> ast.expr | None:
    """Return what an expression cuts off: the x of ``x.item()``, ``x.data``, ``float(x)``, ``torch.tensor(x)``."""
    if isinstance(value, ast.Attribute) and value.attr == "data":
        return value.value
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Attribute):
        if value.func.attr in _CUTS:
            return value.func.value
        if value.func.attr in _NEW and value.args:
            return value.args[0]
        inner = value.func.value  # x.detach().mean(), x.item().real
        return _cuts(inner) if isinstance(inner, (ast.Call, ast.Attribute)) else None
    if isinstance(value.func, ast.Name) and value.func.id == "float" and value.args:
        return value.args[0]
    return None


def _is_sum(value: ast.expr) -> bool:
    value = _unwrapped(value)
    return isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub))


def _adds_itself(value: ast.expr, name: str) -> bool:
    """``name + more``"""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        return _adds_itself(value.left, name) or _adds_itself(value.right, name)
    return isinstance(value, ast.Name) and value.id == name


def _straight_through(value: ast.expr) -> bool:
    """``a + (b - a).detach()`` changes the value of a loss and not its gradient, on purpose."""
    sources = [_cuts(factor) for factor in _factors(value)]
    return any(isinstance(source, ast.BinOp) and isinstance(source.op, ast.Sub) for source in sources)
