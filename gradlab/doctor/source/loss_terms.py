"""Terms of a loss that were cut off from the model: read from autograd's graph, the source and the variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any

from torch import Tensor, nn

from ..events import LossFlaw
from ..finding import Cause, Edit
from ..frames import NO_VALUE, FrameValues
from .cuts import DETACHING, NEW_TENSORS, cut_in_function, without_create_graph
from .loss_edits import operand, with_create_graph
from .syntax import SCOPES, called, called_on, calls_of, dotted, function_around, holds, node_place, nodes_at, reworded

_DEEP = 4  # names that a term is followed through


def find_cut_term(frame: FrameType, node: Any) -> LossFlaw | None:
    """Return the added term that is not in the graph although it was computed from the model, None if there is none.

    node: the graph of the loss whose backward pass begins in a line of the frame.
    """
    function = function_around((frame.f_code.co_filename, frame.f_lineno))
    if (loss := _loss_of(function, frame.f_lineno)) is None:
        return None
    scope = _Scope(function, frame)
    terms = list(scope.terms(loss, node, {}))
    spelled = {ast.dump(term) for term, _ in terms}
    factors = [factor for term, _ in terms for factor in _factors(term)]
    if any((source := _cut_off(one)) is not None and ast.dump(source) in spelled for one in factors):
        return None  # a - a.detach() + b.detach(): a value is exchanged on purpose
    for term, inner in terms:
        if inner is None and (cuts := list(dict.fromkeys(scope.cuts_in(term)))):
            edit, kind = _without(cuts[0])
            seen = f"`{ast.unparse(term)[:60]}` requires no gradient; other terms of the sum do"
            return LossFlaw(kind, seen, edit=edit if len(cuts) == 1 else cuts[0])
    return None


def _loss_of(function: ast.AST, line: int) -> ast.expr | None:
    calls = [one for one in calls_of(ast.walk(function), "backward") if holds(one[0], line)]
    return next((call.args[0] if call.args else owner for call, owner in calls), None)


def _factors(term: ast.expr) -> Iterator[ast.expr]:
    if isinstance(term, ast.BinOp) and isinstance(term.op, (ast.Mult, ast.Div)):
        yield from _factors(term.left)
        yield from _factors(term.right)
    else:
        yield term


class _Scope:
    """The assignments of a function above a line, and the values that its names have now."""

    def __init__(self, function: ast.AST, frame: FrameType) -> None:
        self._file, self._line = frame.f_code.co_filename, frame.f_lineno
        self._values = FrameValues(frame)
        self._made: dict[str, list[tuple[ast.expr, bool]]] = {}  # name -> what was assigned to it, and under no_grad?
        self._read(function)

    def _read(self, node: ast.AST, *, no_grad: bool = False) -> None:
        no_grad = no_grad or (isinstance(node, ast.With) and "no_grad" in ast.unparse(node.items[0]))
        for one in ast.iter_child_nodes(node):
            made: list[tuple[ast.expr, ast.expr]] = []
            if isinstance(one, ast.Assign) and len(one.targets) == 1:
                target = one.targets[0]
                made = [(part, one.value) for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
            elif isinstance(one, ast.AugAssign):
                name = ast.copy_location(ast.Name(getattr(one.target, "id", ""), ast.Load()), one)
                made = [(one.target, ast.copy_location(ast.BinOp(name, one.op, one.value), one))]
            for part, value in made:
                if isinstance(part, ast.Name) and value.lineno <= self._line:
                    self._made.setdefault(part.id, []).append((value, no_grad))
            if not isinstance(one, SCOPES):
                self._read(one, no_grad=no_grad)

    def terms(self, value: ast.expr, node: Any, age: dict[str, int]) -> Iterator[tuple[ast.expr, Any]]:
        """Yield what is added up in an expression, each with its node in the graph, None if it has no part in it.

        age: how many assignments of a name came before this expression, where it is not all of them.
        """
        inner = [one for one, _ in node.next_functions] if node is not None else []
        name = node.name().partition("Backward")[0] if node is not None else ""
        if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "scale" and value.args:
            yield from self.terms(value.args[0], inner[0] if name == "Mul" else node, age)
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) and name == "Div":
            yield from self.terms(value.left, inner[0], age)
        elif (
            name in ("Add", "Sub", "Rsub") and isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub))
        ):
            sides = [*inner, None][:2]
            if name == "Rsub" or self._number(value.left, age):  # 1 + x is computed as x + 1
                sides.reverse()
            yield from self.terms(value.left, sides[0], age)
            yield from self.terms(value.right, sides[1], age)
        elif isinstance(value, ast.Call) and dotted(value.func) == "sum" and (listed := self._listed(value)):
            yield from ((term, None if number.grad_fn is None else node) for term, number in listed)
        elif isinstance(value, ast.Name) and (made := self._sum(value.id, age)) is not None:
            yield from self.terms(made, node, {**age, value.id: age.get(value.id, len(self._made[value.id])) - 1})
        else:
            yield value, node

    def _listed(self, value: ast.Call) -> list[tuple[ast.expr, Tensor]]:
        """Return the terms of ``sum(terms.values())``, or of a list, and what they are now; only if all are known."""
        given = value.args[0] if value.args else value
        name = called_on(given) or given
        made, known = self._made.get(dotted(name), []), self._values.of(name)
        if len(made) != 1 or not isinstance(known, (dict, list, tuple)):
            return []
        listed = made[0][0]
        parts = listed.values if isinstance(listed, ast.Dict) else getattr(listed, "elts", [])
        numbers = [*known.values()] if isinstance(known, dict) else known
        known_all = len(parts) == len(numbers) and all(isinstance(number, Tensor) for number in numbers)
        return [*zip(parts, numbers, strict=True)] if known_all else []

    def _sum(self, name: str, age: dict[str, int]) -> ast.expr | None:
        """Return what was assigned to a name last, if that is sure and adds something up."""
        made = [value for value, _ in self._made.get(name, [])]
        left = age.get(name, len(made))
        if not left or any(name not in map(dotted, ast.walk(value)) for value in made[1:]):
            return None
        return made[left - 1] if isinstance(made[left - 1], (ast.BinOp, ast.Name)) else None

    def _number(self, value: ast.expr, age: dict[str, int]) -> bool:
        if isinstance(value, ast.Name) and (made := self._made.get(value.id, [])[: age.get(value.id, 0)]):
            return self._number(made[-1][0], {**age, value.id: len(made) - 1})
        if isinstance(value, (ast.Name, ast.Attribute)):
            return isinstance(self._values.of(value), (int, float))
        if isinstance(value, ast.Call):
            return called(value) in ("item", "float")
        parts = [one for one in ast.iter_child_nodes(value) if isinstance(one, ast.expr)]
        return isinstance(value, ast.Constant) or (bool(parts) and all(self._number(part, age) for part in parts))

    def _learns(self, value: ast.AST, *, cut: bool = True) -> bool:
        """Return whether an expression uses what requires a gradient; without ``cut``, outside of what is cut off."""
        if not cut and _cut_off(value) is not None:
            return False
        if isinstance(value, (ast.Name, ast.Attribute)) and (known := self._values.of(value)) is not NO_VALUE:
            return any(one.requires_grad for one in _tensors(known))
        return any(self._learns(one, cut=cut) for one in ast.iter_child_nodes(value))

    def cuts_in(self, value: ast.expr, deep: int = _DEEP, *, no_grad: bool = False) -> Iterator[Cause]:
        """Yield the words that cut an expression off from the model, as far as they can be followed."""
        if _straight_through(value):
            return
        nodes, learns = list(ast.walk(value)), self._learns(value)
        own = [one for one in nodes if (source := _cut_off(one)) is not None and self._learns(source)]
        calls = [one for one in nodes if isinstance(one, ast.Call) and learns and self._learns(one)]
        inside = [cause for one in calls if (cause := cut_in_function(self._file, one)) is not None]
        if penalties := [cause for cause in inside if _without(cause)[1] == "penalty"]:
            yield from penalties
        elif no_grad and learns and isinstance(value, (ast.Call, ast.BinOp)):
            yield node_place(self._file, value)
        elif own or inside:
            if not self._learns(value, cut=False) or not own:
                yield from [node_place(self._file, one) for one in own] or inside
        elif deep:
            for name in dict.fromkeys(one.id for one in nodes if isinstance(one, ast.Name)):
                known = self._values.of(ast.Name(name))
                if hasattr(known, "__float__") and not any(one.requires_grad for one in _tensors(known)):
                    for made, under_no_grad in self._made.get(name, []):
                        if not any(one is value for one in ast.walk(made)):
                            yield from self.cuts_in(made, deep - 1, no_grad=under_no_grad)


def _cut_off(value: ast.AST) -> ast.AST | None:
    """Return what an expression cuts off: the x of ``x.item()``, ``x.data``, ``float(x)``, ``torch.tensor(x)``."""
    if isinstance(value, ast.Attribute) and value.attr == "data":
        return value.value
    if not isinstance(value, ast.Call):
        return None
    if without_create_graph(value):
        return value
    if (source := called_on(value, *DETACHING)) is not None:
        return source
    return value.args[0] if value.args and called(value) in (*NEW_TENSORS, "float") else None


def _without(cut: Cause) -> tuple[Edit | Cause, str]:
    """Return the edit that takes a cut out of its line, or the place alone, and the kind of the flaw."""
    for node in nodes_at((cut.file, cut.line)):
        if isinstance(node, ast.expr) and _cut_off(node) is not None and node_place(cut.file, node) == cut:
            if isinstance(node, ast.Call) and without_create_graph(node):
                return with_create_graph(cut.file, node), "penalty"
            kept = node.value if isinstance(node, ast.Attribute) else called_on(node, "item", "detach")
            if kept is not None:
                return reworded(cut, operand(cut.file, kept)), "cut-term"
    return cut, "cut-term"


def _tensors(value: Any) -> list[Tensor]:
    """Return a tensor, or the parameters of a module or of those that an object of the learner's has as attributes."""
    if isinstance(value, Tensor):
        return [value]
    stored = [] if isinstance(value, (nn.Module, type, ModuleType)) else getattr(value, "__dict__", {}).values()
    return [one for part in (value, *stored) if isinstance(part, nn.Module) for one in part.parameters()]


def _straight_through(value: ast.expr) -> bool:
    """``a + (b - a).detach()`` changes the value of a loss and not its gradient, on purpose."""
    sources = [_cut_off(factor) for factor in _factors(value)]
    return any(isinstance(source, ast.BinOp) and isinstance(source.op, ast.Sub) for source in sources)
