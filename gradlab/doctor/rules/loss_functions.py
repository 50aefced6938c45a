"""Loss functions that are given what they are not made for, and terms that move no weight."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from ..events import Backward, LossFlaw, LossTerm
from ..finding import Code
from ..graphs.op_trace import TAKES_NUMBERS
from ..source.cuts import cut_place
from ..source.loss_edits import without_call
from ..source.syntax import cause_at
from .base import Rule, how_many

_MOST_LOOKS = 16  # of one term


class LossFlaws(Rule):
    """What the graphs and expressions of losses show.

    They are looked at in the first three passes of each line and a few later ones. Something found is reported at the
    end, with the lines of an update that was recorded for it.
    """

    wakes_on = frozenset(("pass",))
    # Known from autograd's graph: LogSoftmax whose input, but for reshaping, is the result of Softmax over the same
    # dimension, or of Sigmoid. That is what was computed, so the doubt is only whether it was meant.
    SOFTMAX_BEFORE_CROSS_ENTROPY = Code(
        "softmax-before-cross-entropy",
        "01_autograd",
        severity="warning",
        message="The model's output goes through softmax and then into cross_entropy, which applies log_softmax again: "
        "the loss cannot come near 0 and the gradients are small.",
        fix="Take the {activation} out: the loss expects the result of the last layer as it is, the logits.",
    )
    # Known from the graph, too: the input of the loss, but for reshaping, is the result of Sigmoid or Softmax.
    SIGMOID_BEFORE_BCE_WITH_LOGITS = Code(
        "sigmoid-before-bce-with-logits",
        "01_autograd",
        severity="warning",
        message="The model's output goes through {activation} and then into a loss with logits, which applies sigmoid "
        "again: its probabilities stay between 0.5 and 0.73.",
        fix="Take the {activation} out: the loss expects the result of the last layer as it is, the logits.",
    )
    # Predictions and targets have the same elements in different shapes, such as (N, 1) and (N,). Known from the shapes
    # in the graph, as they were before a squared, absolute or Huber difference was broadcast. Where the target needs no
    # gradient, its shape is read from the variables in the line that ran; if it is not known, the difference has to be
    # one of pairs. Pairs that are made by ``unsqueeze``, or of (N, 1) and (1, N), are left alone, and so is what is
    # broadcast to the shape of the prediction.
    LOSS_BROADCASTS = Code(
        "loss-broadcasts",
        "01_autograd",
        severity="warning",
        message="Predictions and targets have different shapes, so the loss compares every prediction with every "
        "target.",
        fix="Give both sides of the loss the same shape, such as {shape}.",
    )
    # Known from the graph, in which the term has no part, and from the source: what made it has ``.item()``,
    # ``.detach()``, ``torch.tensor(...)`` or ``no_grad`` around something computed from the model, or it is made of a
    # gradient without ``create_graph=True``. A constant that is added changes no gradient, so it is hardly ever meant.
    # Factors, targets and ``a + (b - a).detach()`` are left alone; a sum in another function is not seen.
    LOSS_TERM_DETACHED = Code(
        "loss-term-detached",
        "01_autograd",
        "Cutting the graph",
        severity="warning",
        message="One term of the loss is cut off from the model, so it changes the number and no gradient.",
        fix="Take out what cuts it off: .item(), .detach(), .data, float(...), torch.tensor(...) or no_grad().",
    )
    KINDS: ClassVar[dict[str, Code]] = {
        "softmax": SOFTMAX_BEFORE_CROSS_ENTROPY,
        "sigmoid": SOFTMAX_BEFORE_CROSS_ENTROPY.with_(
            severity="hint",
            message="The model's output goes through sigmoid before cross_entropy, so its logits stay between 0 and 1.",
        ),
        "nll-loss": SOFTMAX_BEFORE_CROSS_ENTROPY.with_(
            message="nll_loss expects log-probabilities and is given probabilities, so the loss is not a "
            "log-likelihood.",
            fix="Use log_softmax in place of softmax.",
        ),
        "kl-div": SOFTMAX_BEFORE_CROSS_ENTROPY.with_(
            message="kl_div expects log-probabilities and is given probabilities, so the loss is no divergence and can "
            "be negative.",
            fix="Use log_softmax in place of {activation}.",
        ),
        "with-logits": SIGMOID_BEFORE_BCE_WITH_LOGITS,
        "broadcast": LOSS_BROADCASTS,
    }
    """The code, with its words, for each kind of flaw."""
    PENALTY = LOSS_TERM_DETACHED.with_(
        message="One term of the loss is made of a gradient that is cut off from the model, so it changes the number "
        "and moves no weight.",
        fix="Compute the gradient with create_graph=True.",
    )
    OF_OTHERS = LOSS_TERM_DETACHED.with_(
        message="One term of the loss reaches no weight that the step moves: it is made of {sources} only.",
        fix="Compute this term from the output of the model that is trained.",
    )

    def _begin(self) -> None:
        self._flaws: dict[tuple[str, int], tuple[Backward, LossFlaw]] = {}
        self._terms: dict[tuple[int, int], list[tuple[Backward, LossTerm]]] = {}

    def backward(self, backward: Backward) -> None:
        """Keep what was found in the graph."""
        for flaw in backward.flaws:
            key = flaw.kind, backward.call_path
            if flaw.kind in self.KINDS and (key not in self._flaws or (flaw.loss and not self._flaws[key][1].loss)):
                self._flaws[key] = backward, flaw
        for term in backward.terms:
            if len(known := self._terms.setdefault((backward.call_path, term.place), [])) < _MOST_LOOKS:
                known.append((backward, term))

    def end(self, *, normal: bool) -> None:
        """Report it."""
        order = [*self.KINDS]
        for backward, flaw in sorted(self._flaws.values(), key=lambda pair: order.index(pair[1].kind)):
            if flaw.seen:
                site = flaw.loss[-1] if flaw.loss else backward.site
                seen = f"at batch {backward.number}, {flaw.seen}"
                edit = without_call(flaw) if flaw.source else flaw.edit
                self.report(self.KINDS[flaw.kind], site, seen, edit, **flaw.words)
        for looks in self._terms.values():
            self._judge_term(looks)

    def _judge_term(self, looks: list[tuple[Backward, LossTerm]]) -> None:
        """Report a term that reached none of the weights that were stepped by its passes, though it was made of them.

        What belongs to no optimizer, as a teacher, may be cut off; but a loss of nothing else is none.
        """
        useless = []
        for backward, term in looks:
            stepped = backward.stepped_params
            covered = self.context.state.covered()
            strange = (
                term.by_loss_function and not term.made_of & covered and not term.reach & self.context.state.training
            )
            own = term.made_of & stepped and not term.reach & ~covered
            by_choice = term.reach and any(one.no_grad for one in term.cuts)
            if stepped and not term.reach & stepped and ((own and not by_choice) or strange):
                useless.append((backward, term))
        used = [backward for backward, _ in looks if backward.stepped_params]
        if not useless or len(useless) < len(used):
            return
        backward, term = useless[-1]
        stepped, words = backward.stepped_params, f"`{term.words}`" if term.words else "the term"
        own = [one for one in term.cuts if one.lost & stepped or not one.inputs or one.name in TAKES_NUMBERS]
        site = term.site if term.site[1] else backward.site
        seen = (
            f"at batch {backward.number}, {words} has no gradient for any of the {how_many(stepped)} that were stepped"
        )
        if term.made_of & stepped:
            code = self.PENALTY if own and own[0].name == "grad" else self.LOSS_TERM_DETACHED
            self.report(code, backward.site, seen, partial(cut_place, own))
        else:
            name = self.context.part_name(term.made_of) if term.made_of else ""
            sources = " and ".join(f"`{one}`" for one in (*term.sources, name) if one) or "data"
            self.report(self.OF_OTHERS, site, seen, cause_at(site), sources=sources)
