"""Detection of operations that cut a loss off from parameters, and of terms of a loss that train no parameter."""

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
_DEEP = 4  # number of assignments through which a number is followed
_LONGEST = 60  # maximum number of characters of a term's source
_LOSSES = ("_loss", "cross_entropy", "cross_entropy_with_logits", "kl_div")  # endings of the names of loss functions
_MOST = 8
_THROUGH = ("mul", "div", "neg", "__rmul__", "true_divide", "mean", "sum", "to", "float", "clone")


def cut_place(ops: Iterable[Op]) -> Edit | Cause | None:
    """Return the edit or location for the only cut in ``ops``, or for the only one other than detach(), or None."""
    causes = {cut[0]: (op, cut[1]) for op in ops if (cut := _locate(op)) is not None}
    others = [cause for cause, (op, _) in causes.items() if op.name != "detach"]
    cause = single_or_none(causes) or single_or_none(others)
    if causes and cause is None and all(op.name == "grad" for op, _ in causes.values()):
        return next(iter(causes))  # every call to torch.autograd.grad() needs create_graph=True: start with the first
    return _without(*causes[cause], cause) if cause is not None else None


def _locate(cut: Op) -> tuple[Cause, ast.expr | None] | None:
    """Return (location, node) of the call, comparison or no_grad that made a cut, (line, None) if unclear, or None."""
    for site in cut.lines:
        nodes = [node for node in nodes_at(site) if isinstance(node, ast.expr)]
        matches = [node for node in nodes if called(node) == "checkpoint" and _REENTRANT in ast.unparse(node)][:1]
        if not matches and cut.no_grad and cut.name != "grad":
            blocks = [item.context_expr for block in statements_around(site, ast.With) for item in block.items]
            blocks += getattr(syntax.function_around(site), "decorator_list", [])
            matches = [block for block in blocks if _NO_GRAD.search(ast.unparse(block))][:1]
        elif not matches:
            matches = [node for node in nodes if calls_op(node, cut.name)]
            makers = [node for node in nodes if called(node) in _MAKES]  # count torch.tensor(x.item()) as one cut
            matches = [node for node in makers if any(part in ast.walk(node) for part in matches)] or matches
            if len(matches) > 1 or (not matches and site == cut.lines[-1]):
                return Cause(*cut.lines[0]), None
        if matches:
            return node_place(site[0], matches[0]), matches[0]
    return None


def _without(cut: Op, node: ast.expr | None, cause: Cause) -> Edit | Cause:
    """Return the edit that removes a cut from its line, or ``cause`` if one replacement would not be enough or safe."""
    text = syntax.text_of(cause)
    if _REENTRANT in text:
        return syntax.reworded(cause, text.replace(_REENTRANT, "use_reentrant=False"))
    if cut.name == "grad" and isinstance(node, ast.Call):
        return with_create_graph(cause.file, node)
    inner = node.value if isinstance(node, ast.Attribute) else called_on(node, "item", "detach")
    if isinstance(node, ast.Call) and inner is None and node.args and called(node) in _MAKES:
        inner = called_on(node.args[0], "item", "detach") or node.args[0]
        inner = inner if isinstance(inner, (ast.Name, ast.Call)) else None
    if inner is None or cut.no_grad or _used_elsewhere(cause):
        return cause
    edit = syntax.reworded(cause, syntax.operand(cause.file, inner))
    target, _, value = edit.line.partition("  #")[0].partition(" = ") if isinstance(edit, Edit) else ("", "", "")
    return cause if target and target == value.strip() else edit


def _used_elsewhere(cause: Cause) -> bool:
    """Return whether several lines use the variable assigned at ``cause``: some of them may need the cut."""
    site = (cause.file, cause.line)
    for statement in statements_around(site, ast.Assign)[:1]:
        nodes = [node for node in syntax.own_nodes(syntax.function_around(site)) if isinstance(node, ast.Name)]
        targets = {name for target in statement.targets for name in syntax.names_in(target)}
        inputs = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
        lines = {node.lineno for node in nodes if node.id in targets and isinstance(node.ctx, ast.Load)}
        return len(lines) > 1 and not targets & inputs
    return False


def find_cuts(root: Op, numbers: list[Op], frame: FrameType | None) -> list[Op]:
    """Return the calls, including item() or the like in ``numbers``, that cut parameters off from the loss ``root``."""
    number = None if root.made_of else _number_term(root, numbers, frame)
    return [*cuts(root), *([number[1]] if number is not None else [])]


def find_terms(root: Op, numbers: list[Op], frame: FrameType | None) -> tuple[LossTerm, ...]:
    """Return the terms of the loss ``root`` that possibly train no parameter; () if one replaces a value on purpose.

    A term can be a Python number if one of the calls in ``numbers``, such as ``item()``, read it from a tensor.
    """
    all_terms, loss_terms = list(terms(root)), list[LossTerm]()
    replaced = {_bare(term) for term in all_terms}
    for index, term in enumerate(all_terms):
        cut_ops, bare, label, made_of = cuts(term), _bare(term), "", term.made_of
        if not made_of and (number := _number_term(term, numbers, frame)) is not None:
            label, cut_ops, made_of = number[0], [number[1]], number[1].made_of
        inputs = [inner for cut in cut_ops if cut is bare for inner in cut.inputs]
        if any(_bare(inner) in replaced or inner.name in ("sub", "__rsub__") for inner in inputs):
            return ()  # a value is replaced on purpose: a + (b - a).detach(), or a - a.detach() + b.detach()
        by_loss = bare.name.endswith(_LOSSES) and (not term.reach or all(side.made_of for side in bare.inputs[:2]))
        if (made_of & ~term.reach or by_loss) and len(loss_terms) < _MOST:
            name, site = label or _label(term) or _label(bare), [*bare.lines, *term.lines, NO_SITE][0]
            outer = [op for op in ops_below(term) if op.made_of and any(not each.lines for each in op.inputs)]
            sources = [name for name in dict.fromkeys(map(_label, outer)) if name.isidentifier()]
            rest = (by_loss, site, tuple(cut_ops), tuple(sources[:2]))
            loss_terms.append(LossTerm(index, name, term.reach, made_of, *rest))
    return tuple(loss_terms)


def _bare(op: Op) -> Op:
    while op.name in _THROUGH and len(op.tensors) == 1:
        op = op.tensors[0]
    return op


def _label(op: Op) -> str:
    """Return the variable that a tensor is assigned to, the source of the call that made it, or "" if unknown."""
    for site in op.lines:
        for assign in statements_around(site, ast.Assign) if site == op.lines[0] else ():
            a_sum = isinstance(getattr(assign.value, "op", None), (ast.Add, ast.Sub))
            if not a_sum and (name := syntax.dotted(assign.targets[0])):
                return name
        for call in nodes_at(site):
            if calls_op(call, op.name) and isinstance(call, (ast.Call, ast.Compare)):
                return ast.unparse(call)[:_LONGEST]
    return ""


def _number_term(term: Op, numbers: list[Op], frame: FrameType | None) -> tuple[str, Op] | None:
    """Return the source of the number in a term, and the call that read the number from a tensor, or None.

    Calculations with Python numbers are not traced, so the search follows the assignments of the names in the source.
    """
    op = next((below for below in ops_below(term) if below.name in _MAKES), term)
    site = op.lines[0] if op.lines else NO_SITE
    if numbers and frame is not None:
        values, statements = variables(frame), statements_around(site, ast.stmt)[:1]
        parts = [node for statement in statements for node in ast.walk(statement) if isinstance(node, ast.expr)]
        makers = [node for node in parts if isinstance(node, ast.Call) and called(node) == op.name in _MAKES]
        parts = [arg for maker in makers for arg in maker.args] or [x for x in parts if _is_number(x, values)]
        for part in sorted(parts, key=lambda node: -len(ast.unparse(node))):
            if (number := _taken_from(part, site, numbers)) is not None:
                return ast.unparse(part)[:_LONGEST], number
    return None


def _is_number(node: ast.AST, values: dict[str, object]) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_number(node.left, values) and _is_number(node.right, values)
    number = isinstance(node, ast.Name) and isinstance(values.get(node.id), (int, float))
    return number or isinstance(node, ast.Constant) or called(node) in ("item", "float")


def _taken_from(side: ast.expr, site: Site, numbers: list[Op]) -> Op | None:
    """Return the call in ``side``, or in assignments to its variables, that read a number from a tensor, or None."""
    expressions, scope = [side], list(syntax.own_nodes(syntax.function_around(site)))
    for _ in range(_DEEP + 1):
        calls = [node for value in expressions for node in ast.walk(value) if isinstance(node, ast.Call)]
        for number in numbers:
            if any(file == site[0] and syntax.holds(call, line) for file, line in number.lines for call in calls):
                return number
        names = {name for value in expressions for name in syntax.names_in(value)}
        assigns = [node for node in scope if isinstance(node, (ast.Assign, ast.AugAssign)) and node.lineno <= site[1]]
        targets = [node.targets if isinstance(node, ast.Assign) else [node.target] for node in assigns]
        assigned = [{name for part in parts for name in syntax.names_in(part)} for parts in targets]
        pairs = zip(assigns, assigned, strict=True)
        expressions = [node.value for node, bound in pairs if names & bound and not _averages(node, bound)]
    return None


def _averages(node: ast.Assign | ast.AugAssign, target_names: set[str]) -> bool:
    """Return whether an assignment averages over updates: ``mean = 0.9 * mean + 0.1 * loss.item()``."""
    weighted = any(isinstance(part, ast.Mult) for part in ast.walk(node.value))
    return isinstance(node, ast.Assign) and weighted and bool(target_names & set(syntax.names_in(node.value)))
