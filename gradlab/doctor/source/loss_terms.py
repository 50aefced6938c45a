"""The terms of a loss, each with the parameters that its graph reaches and those that it was computed from."""

from __future__ import annotations

from types import FrameType

from ..events import NO_SITE, LossTerm
from ..graphs.op_trace import Op, cuts, ops_below, terms
from .cuts import label, number_term, sources

_LOSS_FUNCTIONS = frozenset(
    [
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "cosine_embedding_loss",
        "cross_entropy",
        "ctc_loss",
        "gaussian_nll_loss",
        "hinge_embedding_loss",
        "huber_loss",
        "kl_div",
        "l1_loss",
        "margin_ranking_loss",
        "mse_loss",
        "multi_margin_loss",
        "nll_loss",
        "poisson_nll_loss",
        "smooth_l1_loss",
        "soft_margin_loss",
        "triplet_margin_loss",
    ]
)
_MOST = 8
_THROUGH = ("mul", "div", "neg", "__rmul__", "true_divide", "mean", "sum", "to", "float", "clone")


def find_terms(root: Op, numbers: list[Op], frame: FrameType | None) -> tuple[LossTerm, ...]:
    """Return the terms that may move no weight.

    ``numbers`` are the calls that took numbers out of tensors. Where a value is exchanged on purpose, as in
    ``a + (b - a).detach()`` or ``a - a.detach() + b.detach()``, there are none.
    """
    every = list(terms(root))
    found: list[LossTerm] = []
    exchanged = {_bare(one) for one in every}
    for place, one in enumerate(every):
        own, words, number = cuts(one), "", None
        if not one.made_of and numbers and (pair := number_term(_creation(one), numbers, frame)) is not None:
            words, number = pair
            own = [number]
        if any(
            _bare(inner) in exchanged or inner.name in ("sub", "__rsub__") for cut in own for inner in _given(cut, one)
        ):
            return ()
        made_of = one.made_of | (number.made_of if number is not None else 0)
        bare = _bare(one)
        by_loss = bare.name in _LOSS_FUNCTIONS and (not one.reach or all(side.made_of for side in bare.inputs[:2]))
        if (made_of & ~one.reach or by_loss) and len(found) < _MOST:
            name = words or label(one) or label(bare)
            site = bare.lines[0] if bare.lines else (one.lines[0] if one.lines else NO_SITE)
            alone = len(every) == 1
            found.append(
                LossTerm(place, name, one.reach, made_of, by_loss, site, tuple(own), tuple(sources(one)), alone)
            )
    return tuple(found)


def find_cuts(root: Op, numbers: list[Op], frame: FrameType | None) -> list[Op]:
    """Return the calls that cut parameters off from a loss, also through numbers."""
    found = cuts(root)
    if not root.made_of and numbers and (pair := number_term(_creation(root), numbers, frame)) is not None:
        found.append(pair[1])
    return found


def _bare(op: Op) -> Op:
    """Return what a term is without its weights."""
    while op.name in _THROUGH and len(op.tensors) == 1:
        op = op.tensors[0]
    return op


def _given(cut: Op, term: Op) -> tuple[Op, ...]:
    """Return what a cut was given, if it is the term itself that is cut."""
    return cut.inputs if cut is _bare(term) else ()


def _creation(op: Op) -> Op:
    """Return the call that made a tensor of a number, below a term that is made of nothing that learns."""
    return next((one for one in ops_below(op) if one.name in ("tensor", "as_tensor", "from_numpy")), op)
