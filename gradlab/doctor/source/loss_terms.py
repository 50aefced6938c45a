"""Terms of a loss that were cut off from the model: read from the line of the backward pass and its variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from ..._frames import variables
from ..events import LossFlaw
from ..finding import Cause
from .cuts import DETACHING, NEW_TENSORS, cut_in_function
from .syntax import function_around, node_place

_MISSING = object()
_DEEP = 4  # names of sums in sums


def find_cut_term(frame: FrameType) -> LossFlaw | None:
    """Return the added term that needs no gradient although it was computed from what does, None if there is none."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    function = function_around((file, line))
    if function is None:
        return None
    scope = _Scope(file, function, frame)
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
            if (cut := scope.cut_in(factor)) is not None:
                return LossFlaw("cut-term", f"`{ast.unparse(term)[:60]}`", cut=cut)
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

    def __init__(self, file: str, function: ast.AST, frame: FrameType) -> None:
        self._file = file
        self._values = {**frame.f_globals, **variables(frame)}
        self._assigned: dict[str, list[tuple[ast.expr, bool, bool]]] = {}  # name -> value, added to it?, no_grad?
        self._read(function, no_grad=False)

    def _read(self, node: ast.AST, *, no_grad: bool) -> None:
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.Assign) and len(one.targets) == 1:
                target = one.targets[0]
                for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(part, ast.Name):
                        self._assigned.setdefault(part.id, []).append((one.value, False, no_grad))
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
            if isinstance(known, Tensor):
                return known.requires_grad
            # of lists and the like it is not known what is taken out of them; numbers and NumPy's have no gradient
            return not hasattr(known, "__float__") and not isinstance(known, ModuleType)
        if _cuts(value):
            return False
        if isinstance(value, ast.Call) and not self._needs_its_arguments_only(value):
            return True  # what it returns is not known
        if isinstance(value, ast.Call):
            owner = [value.func.value] if isinstance(value.func, ast.Attribute) else []
            return any(self.needs_grad(one) for one in (*owner, *value.args))
        return any(self.needs_grad(one) for one in ast.iter_child_nodes(value) if isinstance(one, ast.expr))

    def _needs_its_arguments_only(self, call: ast.Call) -> bool:
        """Is it a method of a tensor, a function of PyTorch's, or a loss without parameters?"""
        if isinstance(call.func, ast.Attribute):
            owner = self.value(call.func.value)
            if isinstance(owner, Tensor) or owner in (torch, torch.nn.functional):
                return True
        function = self.value(call.func)
        return isinstance(function, nn.Module) and next(function.parameters(), None) is None

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
            if any(p.requires_grad for module in _modules(known) for p in module.parameters()):
                return True
        return False

    def cut_in(self, factor: ast.expr) -> Cause | None:
        """Return the words that cut a factor off from the model, None if nothing shows that they do."""
        if not isinstance(factor, ast.Name):
            if _straight_through(factor):
                return None
            if (cut := self._cut_of(factor)) is not None:
                return node_place(self._file, cut)
        names = [one.id for one in ast.walk(factor) if isinstance(one, ast.Name)]
        return next((cause for name in names if (cause := self._cut_of_name(name)) is not None), None)

    def _cut_of_name(self, name: str, depth: int = _DEEP) -> Cause | None:
        known = self._values.get(name)
        is_number = isinstance(known, (float, Tensor)) or (hasattr(known, "__float__") and not isinstance(known, int))
        if not is_number or (isinstance(known, Tensor) and known.requires_grad) or not depth:
            return None
        for value, _, no_grad in self._assigned.get(name, []):
            if _straight_through(value):
                return None
            learns = self.learns(value)
            if no_grad and learns and isinstance(value, (ast.Call, ast.BinOp)):
                return node_place(self._file, value)
            if (cut := self._cut_of(value)) is not None:
                return node_place(self._file, cut)
            if learns and isinstance(value, ast.Call):
                return cut_in_function(self._file, value)
            for one in ast.walk(value):
                other = one.id if isinstance(one, ast.Name) and one.id != name else ""
                if other and (cause := self._cut_of_name(other, depth - 1)) is not None:
                    return cause
        return None

    def _cut_of(self, value: ast.expr) -> ast.expr | None:
        """Return the first cut in an expression that is around something computed from the model."""
        for one in ast.walk(value):
            source = _cuts(one) if isinstance(one, ast.expr) else None
            if source is not None and self.learns(source):
                return one  # type: ignore[return-value]  # it is an expression
        return None


def _cuts(value: ast.expr) -> ast.expr | None:
    """Return what an expression cuts off: the x of ``x.item()``, ``x.data``, ``float(x)``, ``torch.tensor(x)``."""
    if isinstance(value, ast.Attribute) and value.attr == "data":
        return value.value
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Attribute):
        if value.func.attr in DETACHING:
            return value.func.value
        if value.func.attr in NEW_TENSORS and value.args:
            return value.args[0]
        inner = value.func.value  # x.detach().mean(), x.item().real
        return _cuts(inner) if isinstance(inner, (ast.Call, ast.Attribute)) else None
    if isinstance(value.func, ast.Name) and value.func.id == "float" and value.args:
        return value.args[0]
    return None


def _modules(value: Any) -> list[nn.Module]:
    """Return a module, or those that an object of the learner's has as attributes."""
    if isinstance(value, nn.Module):
        return [value]
    if isinstance(value, (Tensor, type, ModuleType)):
        return []
    return [one for one in getattr(value, "__dict__", {}).values() if isinstance(one, nn.Module)]


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
