"""Loss functions that are given what they are not made for: probabilities for logits, and other shapes."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from ..events import NO_SITE, LossFlaw, Site
from ..finding import Cause, Code, Severity
from ..source.calls import call_of_attribute, calls_named, kept_under_new_name, loss_call
from ..source.syntax import function_around, only
from .base import Rule, RuleContext


class _Words(NamedTuple):
    severity: Severity
    message: str
    fix: str
    loss: tuple[str, ...]
    """Words in the name of the loss function ..."""
    source: tuple[str, ...]
    """... and in the name of what is one too many."""


class _LossRule(Rule):
    """Collects what the graphs next to losses show of its one code.

    They are looked at in the first three passes of each line and a few later ones. Something found is reported at the
    end, with the lines of an update that was recorded for it.
    """

    _WORDS: ClassVar[dict[str, _Words]]

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._seen: dict[tuple[str, int], tuple[Any, LossFlaw]] = {}

    def backward(self, backward: Any) -> None:
        """Keep what was found in the graph."""
        for flaw in backward.flaws:
            if flaw.kind in self._WORDS:
                key = flaw.kind, backward.call_path
                if key not in self._seen or (flaw.traced and not self._seen[key][1].traced):
                    self._seen[key] = backward, flaw

    def end(self, *, normal: bool) -> None:
        """Report it."""
        (code,) = self.codes
        for backward, flaw in self._seen.values():
            words = self._WORDS[flaw.kind]
            site = flaw.loss if flaw.loss != NO_SITE else loss_call(backward.site, words.loss)
            seen, cause = f"at batch {backward.number}, {flaw.seen}", _cause(backward.site, flaw, site, words)
            self.report_as(code, words.severity, site, words.message, seen, words.fix, cause)


def _cause(backward: Site, flaw: LossFlaw, site: Site, words: _Words) -> Cause | None:
    """Return the call that is one too many: in the line that ran, or where its module is made."""
    loss = only(calls_named(site[0], words.loss, site[1])) or (Cause(*site) if flaw.traced else None)
    if not words.source:  # shapes: where a helper computes the loss, its call says what it is given
        helper = len(flaw.source) > 1 and function_around(flaw.source[-1]) is not function_around(backward)
        return Cause(*flaw.source[-2]) if helper else loss
    if not flaw.source:
        return only(calls_named(site[0], words.source))
    for file, line in reversed(flaw.source):
        if found := calls_named(file, words.source, line):
            return loss if kept_under_new_name((file, line)) else found[0]
    files = dict.fromkeys(file for file, _ in flaw.source)
    made = only(one for file in files for one in calls_named(file, words.source))
    return made if made is None else call_of_attribute(made, flaw.source[-1]) or made


_CE = ("cross_entropy", "crossentropy", "criterion", "loss", "nll")
_SOFTMAX, _SIGMOID = ("softmax", "softmin"), ("sigmoid",)
_LOGITS = "# take softmax out: the loss wants the last layer's result as it is, the logits"


class SoftmaxTwice(_LossRule):
    """``cross_entropy`` takes a softmax itself; a softmax before it makes gradients small and caps the confidence.

    Known from autograd's graph: LogSoftmax whose input, but for reshaping, is the result of Softmax over the same
    dimension. That is what was computed, so the doubt is only whether it was meant. log_softmax twice changes nothing:
    a hint.
    """

    SOFTMAX_BEFORE_CROSS_ENTROPY = Code("softmax-before-cross-entropy", "01_autograd")
    _WORDS: ClassVar = {
        "softmax": _Words(
            "warning",
            "The model's output goes through softmax and then into cross_entropy, which applies log_softmax again: the "
            "loss cannot come near 0 and the gradients are small.",
            _LOGITS,
            _CE,
            _SOFTMAX,
        ),
        "softmax-nll-loss": _Words(
            "warning",
            "nll_loss expects log-probabilities and is given probabilities, so the loss is not a log-likelihood.",
            "loss = F.cross_entropy(logits, y)  # or F.nll_loss(F.log_softmax(logits, dim=1), y)",
            _CE,
            _SOFTMAX,
        ),
        "sigmoid": _Words(
            "hint",
            "The model's output goes through sigmoid before cross_entropy, so its logits stay between 0 and 1.",
            _LOGITS,
            _CE,
            _SIGMOID,
        ),
        "log-softmax": _Words(
            "hint",
            "cross_entropy is given log-probabilities and applies log_softmax again: the result is the same, and the "
            "first one is wasted work.",
            "loss = F.nll_loss(log_probabilities, y)  # or cross_entropy of the logits",
            _CE,
            _SOFTMAX,
        ),
    }


class SigmoidTwice(_LossRule):
    """``BCEWithLogitsLoss`` takes a sigmoid itself.

    Known from autograd's graph: its input, but for reshaping, is the result of Sigmoid or Softmax.
    """

    SIGMOID_BEFORE_BCE_WITH_LOGITS = Code("sigmoid-before-bce-with-logits", "01_autograd")
    _WORDS: ClassVar = {
        f"{name}-with-logits": _Words(
            "warning",
            f"The model's output goes through {name} and then into a loss with logits, which applies sigmoid again: "
            "its probabilities stay between 0.5 and 0.73.",
            "# take sigmoid out: the loss wants the last layer's result as it is, the logits",
            ("with_logits", "withlogits", "criterion", "loss", "bce"),
            source,
        )
        for name, source in (("sigmoid", _SIGMOID), ("softmax", _SOFTMAX))
    }


class LossBroadcasts(_LossRule):
    """Predictions of shape (N, 1) against targets of shape (N,): each is compared with all.

    Known from the shapes in autograd's graph: one side of a squared, absolute or Huber difference has grown from
    (N, 1) or (N,) to (N, N). Where the other side needs no gradient its shape is not in the graph, but nothing else
    gives (N, N). Pairs that are made by ``unsqueeze``, or of (N, 1) and (1, N), are left alone.
    """

    LOSS_BROADCASTS = Code("loss-broadcasts", "01_autograd")
    _WORDS: ClassVar = {
        "broadcast": _Words(
            "warning",
            "Predictions and targets have different shapes, so the loss compares every prediction with every target.",
            "# give both sides the same shape: .squeeze(1) on the prediction, or .unsqueeze(1) on the target",
            ("loss", "criterion", "mse", "l1", "huber", "pow", "**", "square", "abs"),
            (),
        )
    }


class LossTermDetached(Rule):
    """One term of a sum is a plain number by the time it is added, so it moves no weight.

    Known from the variables at ``backward()``: the term needs no gradient while another does; and from the source: its
    assignment has ``.item()``, ``.detach()``, ``torch.tensor(...)`` or ``no_grad`` around something computed from the
    model. A constant that is added changes no gradient, so it is hardly ever meant. Factors, targets and
    ``a + (b - a).detach()`` are left alone; a sum in another function is not seen.
    """

    LOSS_TERM_DETACHED = Code("loss-term-detached", "01_autograd", "Cutting the graph")

    def __init__(self, context: RuleContext) -> None:
        super().__init__(context)
        self._times: dict[Any, int] = {}

    def backward(self, backward: Any) -> None:
        """Speak when the same term was cut off in two passes."""
        for flaw in backward.flaws:
            if flaw.kind == "cut-term" and flaw.cut is not None:
                times = self._times[flaw.cut] = self._times.get(flaw.cut, 0) + 1
                if times == 2:
                    self.report_as(
                        self.LOSS_TERM_DETACHED,
                        "warning",
                        backward.site,
                        "One term of the loss is cut off from the model, so it changes the number and no gradient.",
                        f"at batch {backward.number} {flaw.seen} requires no gradient; other terms of the sum do",
                        "# take out .item(), .detach(), .data, float(...), torch.tensor(...) or no_grad() around it",
                        flaw.cut,
                    )
