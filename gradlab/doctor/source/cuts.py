"""The words that cut a tensor off from its graph, and what the terms of a loss are called, in the lines that ran."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from types import FrameType

from ..._frames import variables
from ..events import Site
from ..finding import Cause, Edit
from ..graphs.op_trace import Op, ops_below
from .loss_edits import operand, with_create_graph
from .syntax import (
    FUNCTIONS,
    called,
    called_on,
    dotted,
    function_around,
    holds,
    node_place,
    nodes_at,
    own_nodes,
    reworded,
    single_or_none,
    statements_around,
    words_of,
)

_NO_GRAD = re.compile("no_grad|inference_mode|set_grad_enabled")
_REENTRANT = "use_reentrant=True"
_MAKES = ("tensor", "as_tensor", "float")
_DEEP = 4  # names that a number is followed through


def cut_place(found: Iterable[Op]) -> Edit | Cause | None:
    """Return what cuts a graph off, with the edit that takes it out where one word does; None if it is not one place.

    Of several, one that is no detach() counts, which is often meant for one operand of many.
    """
    places = {place: one for one in found if (place := _place(one)) is not None}
    whole = {place: one for place, one in places.items() if one.name != "detach"}
    place = single_or_none(places) or single_or_none(whole)
    return without(places[place], place) if place is not None else None


def without(cut: Op, place: Cause) -> Edit | Cause:
    """Return the edit that takes a cut out of its line; the place alone if it takes more than a word."""
    words = words_of(place)
    if _REENTRANT in words:
        return reworded(place, words.replace(_REENTRANT, "use_reentrant=False"))
    node = next((one for one in nodes_at((place.file, place.line)) if _same_place(one, place)), None)
    if cut.name == "grad" and isinstance(node, ast.Call):
        return with_create_graph(place.file, node)
    kept = node.value if isinstance(node, ast.Attribute) else called_on(node, "item", "detach")
    if isinstance(node, ast.Call) and kept is None and node.args and called(node) in _MAKES:
        kept = called_on(node.args[0], "item", "detach") or node.args[0]
        kept = kept if isinstance(kept, (ast.Name, ast.Call)) else None
    if kept is None or cut.no_grad:
        return place
    edit = reworded(place, operand(place.file, kept))
    target, _, value = edit.line.partition("  #")[0].partition(" = ") if isinstance(edit, Edit) else ("", "", "")
    return place if target and target == value.strip() else edit


def _same_place(node: ast.AST, place: Cause) -> bool:
    return isinstance(node, ast.expr) and node_place(place.file, node) == place


def _place(cut: Op) -> Cause | None:
    """Return the words of a cut: a call, a comparison, or the no_grad around it."""
    for site in cut.lines:
        nodes = nodes_at(site)
        if reentrant := [one for one in nodes if called(one) == "checkpoint" and _REENTRANT in ast.unparse(one)]:
            return node_place(site[0], reentrant[0])
        if cut.no_grad and cut.name != "grad":
            blocks = [item.context_expr for one in statements_around(site, ast.With) for item in one.items]
            around = function_around(site)
            blocks += around.decorator_list if isinstance(around, FUNCTIONS) else []
            if quiet := [one for one in blocks if _NO_GRAD.search(ast.unparse(one))]:
                return node_place(site[0], quiet[0])
            continue
        own = [one for one in nodes if _calls(one, cut)]
        made = [one for one in nodes if called(one) in _MAKES and any(part in ast.walk(one) for part in own)]
        own = made or own  # torch.tensor(x.item()) is one cut
        if own or site == cut.lines[-1]:
            return single_or_none(node_place(site[0], one) for one in own) or Cause(*cut.lines[0])
    return None


def _calls(node: ast.AST, cut: Op) -> bool:
    name = cut.name.strip("_")
    if name in ("lt", "gt", "le", "ge", "eq", "ne"):
        return isinstance(node, ast.Compare)
    if name == "data":
        return isinstance(node, ast.Attribute) and node.attr == name
    return called(node).strip("_") == name


def label(op: Op) -> str:
    """Return what the learner calls a tensor: the variable that its line gives it to, or the words of its call."""
    for site in op.lines:
        for node in statements_around(site, (ast.Assign, ast.AnnAssign)):
            target = dotted(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            operands = _operands(node.value)
            if len(operands) > 1:
                own = [one for one in operands if any(_calls(part, op) for part in ast.walk(one))]
                return ast.unparse(own[0])[:60] if len(own) == 1 else ""
            if target and op.lines[0] == site:
                return target
        calls = [one for one in nodes_at(site) if isinstance(one, (ast.Call, ast.Compare)) and _calls(one, op)]
        if calls:
            return ast.unparse(calls[0])[:60]
    return ""


def _operands(value: ast.AST | None) -> list[ast.expr]:
    """Return what an expression adds up."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        return [*_operands(value.left), *_operands(value.right)]
    return [value] if isinstance(value, ast.expr) else []


def number_term(op: Op, numbers: list[Op], frame: FrameType | None) -> tuple[str, Op] | None:
    """Return the words of a number in a sum, and the call that took it out of a tensor; None if none is known.

    ``op`` is a number that was added, or what was made of numbers; it is followed through the names in its line.
    """
    site = op.lines[0] if op.lines else None
    statement = next(iter(statements_around(site, ast.stmt)), None) if site is not None else None
    if site is None or statement is None or frame is None:
        return None
    values, scope = variables(frame), function_around(site)
    sides = [side for one in ast.walk(statement) if isinstance(one, ast.BinOp) for side in (one.left, one.right)]
    sides += [one.value for one in ast.walk(statement) if isinstance(one, ast.AugAssign)]
    sides += [
        one.args[0] for one in ast.walk(statement) if isinstance(one, ast.Call) and called(one) == op.name and one.args
    ]
    for side in sorted(sides, key=lambda one: -len(ast.unparse(one))):
        names = {one.id for one in ast.walk(side) if isinstance(one, ast.Name) and one.id in values}
        direct = _taken(side, site[0], numbers)
        plain = op.name != "number" or all(isinstance(values[one], (int, float)) for one in names)
        if direct is not None and (op.name != "number" or isinstance(side, (ast.Call, ast.BinOp))) and _is_number(side):
            return ast.unparse(side)[:60], direct
        if plain and names and (found := _behind(names, scope, site, numbers)) is not None:
            return ast.unparse(side)[:60], found
    return None


def _is_number(side: ast.expr) -> bool:
    """Return whether an expression is what was taken out of a tensor, perhaps times a number."""
    if isinstance(side, ast.BinOp) and isinstance(side.op, (ast.Mult, ast.Div)):
        return _is_number(side.left) or _is_number(side.right)
    return called(side) in ("item", "float", "tensor", "as_tensor", "from_numpy")


def _taken(node: ast.AST, file: str, numbers: list[Op]) -> Op | None:
    """Return the call that took a number out of a tensor inside an expression."""
    return next((one for one in numbers for site in one.lines if site[0] == file and holds(node, site[1])), None)


def _behind(names: set[str], scope: ast.AST, site: Site, numbers: list[Op]) -> Op | None:
    for _ in range(_DEEP):
        made: list[ast.expr] = []
        for node in own_nodes(scope):
            if isinstance(node, (ast.Assign, ast.AugAssign)) and node.lineno <= site[1]:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(one, ast.Name) and one.id in names for part in targets for one in ast.walk(part)):
                    made.append(node.value)
        for value in made:
            if (found := _taken(value, site[0], numbers)) is not None:
                return found
        names = {one.id for value in made for one in ast.walk(value) if isinstance(one, ast.Name)} - names
        if not names:
            return None
    return None


def sources(op: Op) -> list[str]:
    """Return what the learner calls the outputs of models that a term is made of."""
    calls = [
        one for one in ops_below(op) if one.inputs and any(not inner.lines for inner in one.inputs) and one.made_of
    ]
    return list(dict.fromkeys(name for one in calls if (name := label(one)) and name.isidentifier()))[:2]
