"""What cuts a loss off from its parameters, and terms that move no weight: in the words of the lines that ran."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from types import FrameType

from ..._frames import variables
from ..events import NO_SITE, LossTerm, Site
from ..finding import Cause, Edit
from ..graphs.op_trace import Op, cuts, ops_below, terms
from . import syntax
from .loss_edits import with_create_graph
from .syntax import called, called_on, calls_op, node_place, nodes_at, single_or_none, statements_around

_NO_GRAD = re.compile("no_grad|inference_mode|set_grad_enabled")
_REENTRANT = "use_reentrant=True"
_MAKES = ("tensor", "as_tensor", "float", "from_numpy")
_DEEP = 4  # names that a number is followed through
_LONGEST = 60  # characters of a term
_LOSSES = ("_loss", "cross_entropy", "cross_entropy_with_logits", "kl_div")  # how the names of functions end
_MOST = 8
_THROUGH = ("mul", "div", "neg", "__rmul__", "true_divide", "mean", "sum", "to", "float", "clone")


def cut_place(found: Iterable[Op]) -> Edit | Cause | None:
    """Return the one place that cuts a graph off, before a detach() that may be meant, with the edit of one word."""
    places = {cut[0]: (one, cut[1]) for one in found if (cut := _place(one)) is not None}
    whole = [place for place, (one, _) in places.items() if one.name != "detach"]
    place = single_or_none(places) or single_or_none(whole)
    if places and place is None and all(one.name == "grad" for one, _ in places.values()):
        return next(iter(places))  # each of them needs its create_graph
    return _without(*places[place], place) if place is not None else None


def _place(cut: Op) -> tuple[Cause, ast.expr | None] | None:
    """Return the place and the node of a cut: a call, a comparison, or the no_grad around it."""
    for site in cut.lines:
        nodes = [one for one in nodes_at(site) if isinstance(one, ast.expr)]
        own = [one for one in nodes if called(one) == "checkpoint" and _REENTRANT in ast.unparse(one)][:1]
        if not own and cut.no_grad and cut.name != "grad":
            blocks = [item.context_expr for one in statements_around(site, ast.With) for item in one.items]
            blocks += getattr(syntax.function_around(site), "decorator_list", [])
            own = [one for one in blocks if _NO_GRAD.search(ast.unparse(one))][:1]
        elif not own:
            own = [one for one in nodes if calls_op(one, cut.name)]
            # torch.tensor(x.item()) is one cut
            own = [one for one in nodes if called(one) in _MAKES and any(part in ast.walk(one) for part in own)] or own
            if site == cut.lines[-1] or own:
                return (node_place(site[0], own[0]), own[0]) if len(own) == 1 else (Cause(*cut.lines[0]), None)
        if own:
            return node_place(site[0], own[0]), own[0]
    return None


def _without(cut: Op, node: ast.expr | None, place: Cause) -> Edit | Cause:
    """Return the edit that takes a cut out of its line; the place alone if it takes more than a word."""
    words = syntax.words_of(place)
    if _REENTRANT in words:
        return syntax.reworded(place, words.replace(_REENTRANT, "use_reentrant=False"))
    if cut.name == "grad" and isinstance(node, ast.Call):
        return with_create_graph(place.file, node)
    kept = node.value if isinstance(node, ast.Attribute) else called_on(node, "item", "detach")
    if isinstance(node, ast.Call) and kept is None and node.args and called(node) in _MAKES:
        kept = called_on(node.args[0], "item", "detach") or node.args[0]
        kept = kept if isinstance(kept, (ast.Name, ast.Call)) else None
    if kept is None or cut.no_grad or _used_elsewhere(place):
        return place
    edit = syntax.reworded(place, syntax.operand(place.file, kept))
    target, _, value = edit.line.partition("  #")[0].partition(" = ") if isinstance(edit, Edit) else ("", "", "")
    return place if target and target == value.strip() else edit


def _used_elsewhere(place: Cause) -> bool:
    """Return whether what a line makes goes into several statements: the cut may be right for some of them."""
    site = (place.file, place.line)
    for statement in statements_around(site, ast.Assign)[:1]:
        nodes = [one for one in syntax.own_nodes(syntax.function_around(site)) if isinstance(one, ast.Name)]
        made = {name for target in statement.targets for name in syntax.names_in(target)}
        given = {one.id for one in ast.walk(statement.value) if isinstance(one, ast.Name)}
        lines = {one.lineno for one in nodes if one.id in made and isinstance(one.ctx, ast.Load)}
        return len(lines) > 1 and not made & given
    return False


def find_cuts(root: Op, numbers: list[Op], frame: FrameType | None) -> list[Op]:
    """Return the calls that cut parameters off from a loss, also through numbers."""
    number = None if root.made_of else _number_term(root, numbers, frame)
    return [*cuts(root), *([number[1]] if number is not None else [])]


def find_terms(root: Op, numbers: list[Op], frame: FrameType | None) -> tuple[LossTerm, ...]:
    """Return the terms that may move no weight; ``numbers`` are the calls that took numbers out of tensors."""
    every, found = list(terms(root)), list[LossTerm]()
    exchanged = {_bare(one) for one in every}
    for place, one in enumerate(every):
        own, bare, words, made_of = cuts(one), _bare(one), "", one.made_of
        if not made_of and (number := _number_term(one, numbers, frame)) is not None:
            words, own, made_of = number[0], [number[1]], number[1].made_of
        given = [inner for cut in own if cut is bare for inner in cut.inputs]
        if any(_bare(inner) in exchanged or inner.name in ("sub", "__rsub__") for inner in given):
            return ()  # a value is exchanged on purpose: a + (b - a).detach(), or a - a.detach() + b.detach()
        by_loss = bare.name.endswith(_LOSSES) and (not one.reach or all(side.made_of for side in bare.inputs[:2]))
        if (made_of & ~one.reach or by_loss) and len(found) < _MOST:
            name, site = words or _label(one) or _label(bare), [*bare.lines, *one.lines, NO_SITE][0]
            fed = [inner for inner in ops_below(one) if inner.made_of and any(not each.lines for each in inner.inputs)]
            sources = [name for name in dict.fromkeys(map(_label, fed)) if name.isidentifier()]
            rest = (site, tuple(own), tuple(sources[:2]), len(every) == 1)
            found.append(LossTerm(place, name, one.reach, made_of, by_loss, *rest))
    return tuple(found)


def _bare(op: Op) -> Op:
    """Return what a term is without its weights."""
    while op.name in _THROUGH and len(op.tensors) == 1:
        op = op.tensors[0]
    return op


def _label(op: Op) -> str:
    """Return what the learner calls a tensor: the variable that its line gives it to, or the words of its call."""
    for site in op.lines:
        for one in statements_around(site, ast.Assign) if site == op.lines[0] else ():
            a_sum = isinstance(getattr(one.value, "op", None), (ast.Add, ast.Sub))
            if not a_sum and (name := syntax.dotted(one.targets[0])):
                return name
        for call in nodes_at(site):
            if calls_op(call, op.name) and isinstance(call, (ast.Call, ast.Compare)):
                return ast.unparse(call)[:_LONGEST]
    return ""


def _number_term(term: Op, numbers: list[Op], frame: FrameType | None) -> tuple[str, Op] | None:
    """Return the words of a number in a sum, and the call that took it out of a tensor; None if none is known.

    Python computes with numbers unseen, so that they are followed through the names in the term's line.
    """
    op = next((one for one in ops_below(term) if one.name in _MAKES), term)
    site = op.lines[0] if op.lines else NO_SITE
    if numbers and frame is not None:
        values, statements = variables(frame), statements_around(site, ast.stmt)[:1]
        parts = [one for statement in statements for one in ast.walk(statement) if isinstance(one, ast.expr)]
        makers = [one for one in parts if isinstance(one, ast.Call) and called(one) == op.name and op.name in _MAKES]
        parts = [one for maker in makers for one in maker.args] or [one for one in parts if _is_number(one, values)]
        for part in sorted(parts, key=lambda one: -len(ast.unparse(one))):
            if (found := _taken_from(part, site, numbers)) is not None:
                return ast.unparse(part)[:_LONGEST], found
    return None


def _is_number(node: ast.AST, values: dict[str, object]) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_number(node.left, values) and _is_number(node.right, values)
    number = isinstance(node, ast.Name) and isinstance(values.get(node.id), (int, float))
    return number or isinstance(node, ast.Constant) or called(node) in ("item", "float")


def _taken_from(side: ast.expr, site: Site, numbers: list[Op]) -> Op | None:
    """Return the call that took a number out of a tensor, in an expression or in what its names were given."""
    made, scope = [side], list(syntax.own_nodes(syntax.function_around(site)))
    for _ in range(_DEEP + 1):
        calls = [one for value in made for one in ast.walk(value) if isinstance(one, ast.Call)]
        for number in numbers:
            if any(file == site[0] and syntax.holds(call, line) for file, line in number.lines for call in calls):
                return number
        names = {name for value in made for name in syntax.names_in(value)}
        given = [one for one in scope if isinstance(one, (ast.Assign, ast.AugAssign)) and one.lineno <= site[1]]
        targets = {one: one.targets if isinstance(one, ast.Assign) else [one.target] for one in given}
        own = {one: {name for part in targets[one] for name in syntax.names_in(part)} for one in given}
        made = [one.value for one in given if names & own[one] and not _averages(one, own[one])]
    return None


def _averages(node: ast.Assign | ast.AugAssign, own: set[str]) -> bool:
    """Recognise ``mean = 0.9 * mean + 0.1 * loss.item()``: a number of earlier updates, as a baseline is."""
    weighed = any(isinstance(one, ast.Mult) for one in ast.walk(node.value))
    return isinstance(node, ast.Assign) and weighed and bool(own & set(syntax.names_in(node.value)))
