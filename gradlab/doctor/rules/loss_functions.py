"""Loss functions that are given what they are not made for."""

from __future__ import annotations

from typing import ClassVar

from ..events import Backward, LossFlaw
from ..finding import Code
from ..source.loss_edits import without_call
from .base import Rule


class LossFlaws(Rule):
    """What the graphs of losses show.

    They are looked at in the first three passes of each line and a few later ones. Something found is reported at the
    end, with the lines of an update that was recorded for it.
    """

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
        "with-logits": SIGMOID_BEFORE_BCE_WITH_LOGITS,
        "broadcast": LOSS_BROADCASTS,
    }
    """The code, with its words, for each kind of flaw."""

    def _begin(self) -> None:
        self._flaws: dict[tuple[str, int], tuple[Backward, LossFlaw]] = {}

    def backward(self, backward: Backward) -> None:
        """Keep what was found in the graph."""
        for flaw in backward.flaws:
            key = flaw.kind, backward.call_path
            if flaw.kind in self.KINDS and (key not in self._flaws or (flaw.loss and not self._flaws[key][1].loss)):
                self._flaws[key] = backward, flaw

    def end(self, *, normal: bool) -> None:
        """Report it."""
        order = [*self.KINDS]
        for backward, flaw in sorted(self._flaws.values(), key=lambda pair: order.index(pair[1].kind)):
            if flaw.seen:
                site = flaw.loss[-1] if flaw.loss else backward.site
                seen = f"at batch {backward.number}, {flaw.seen}"
                edit = without_call(flaw) if flaw.source else flaw.edit
                self.report(self.KINDS[flaw.kind], site, seen, edit, **flaw.words)
