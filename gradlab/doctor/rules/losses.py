"""Rules for losses: wrong inputs, terms that train no parameter, NaN or infinite values, and growing graphs."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

from ...formatting import short
from ..events import Backward, LossFlaw, LossTerm
from ..finding import Cause, Code
from ..graphs.autograd_graph import LOOK_EVERY
from ..graphs.op_trace import TAKES_NUMBERS
from ..source.carried import without_graph
from ..source.cuts import cut_place
from ..source.loss_edits import without_call
from ..source.syntax import cause_at
from ..state.facts import StepFacts
from .base import Rule, how_many

_MAX_PASSES_PER_TERM = 16  # backward passes


class LossFlaws(Rule):
    """Mistakes in how a loss is computed, detected in its autograd graph or in the traced calls.

    A loss is examined in the first three backward passes that the same chain of calls starts, and in a few later ones.
    Its flaws are reported when the watch ends, if possible with source lines from a pass whose calls were traced.
    """

    # In the autograd graph, LogSoftmax receives the output of Sigmoid, or of Softmax over the same dimension, possibly
    # reshaped. The severity is only "warning" because the code may be intentional.
    SOFTMAX_BEFORE_CROSS_ENTROPY = Code(
        "softmax-before-cross-entropy",
        "01_autograd",
        severity="warning",
        message="The model's output goes through softmax and then into cross_entropy, which applies log_softmax again: "
        "the loss cannot come near 0 and the gradients are small.",
        fix="Take the {activation} out: the loss expects the result of the last layer as it is, the logits.",
    )
    # In the autograd graph, BinaryCrossEntropyWithLogits receives the output of Sigmoid or Softmax, possibly reshaped.
    SIGMOID_BEFORE_BCE_WITH_LOGITS = Code(
        "sigmoid-before-bce-with-logits",
        "01_autograd",
        severity="warning",
        message="The model's output goes through {activation} and then into a loss with logits, which applies sigmoid "
        "again: its probabilities stay between 0.5 and 0.73.",
        fix="Take the {activation} out: the loss expects the result of the last layer as it is, the logits.",
    )
    # Predictions and targets have the same number of elements in different shapes, such as (N, 1) and (N,), and a
    # squared, absolute or Huber difference broadcasts them. The shapes are read from the graph; if the target requires
    # no gradient, its shape is read from the traced call, and nothing is reported without a trace. Intended pairs,
    # by ``unsqueeze`` or of (N, 1) and (1, N), and targets broadcast to the shape of the predictions are not reported.
    LOSS_BROADCASTS = Code(
        "loss-broadcasts",
        "01_autograd",
        severity="warning",
        message="Predictions and targets have different shapes, so the loss compares every prediction with every "
        "target.",
        fix="Give both sides of the loss the same shape, such as {shape}.",
    )
    # The traced calls show that a term of the loss is computed from the model, but that ``.item()``, ``.detach()``,
    # ``torch.tensor(...)``, ``no_grad``, or a gradient without ``create_graph=True`` cuts the term off from the
    # parameters. It is rarely intentional to add such a constant. Detached factors and targets are not reported, and
    # neither is ``a + (b - a).detach()``. A Python number is traced back only within the function that adds it.
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
            message="kl_div expects log-probabilities and is given probabilities, so the loss is not a divergence and "
            "can be negative.",
            fix="Use log_softmax in place of {activation}.",
        ),
        "with-logits": SIGMOID_BEFORE_BCE_WITH_LOGITS,
        "broadcast": LOSS_BROADCASTS,
    }
    """Kind of flaw -> the code that reports it."""
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
        for flaw in backward.flaws:
            key = flaw.kind, backward.call_path
            if flaw.kind in self.KINDS and (key not in self._flaws or (flaw.loss and not self._flaws[key][1].loss)):
                self._flaws[key] = backward, flaw
        for term in backward.terms:
            if len(passes := self._terms.setdefault((backward.call_path, term.index), [])) < _MAX_PASSES_PER_TERM:
                passes.append((backward, term))

    def end(self, *, normal: bool) -> None:
        order = [*self.KINDS]
        for backward, flaw in sorted(self._flaws.values(), key=lambda pair: order.index(pair[1].kind)):
            if flaw.proof:
                site = flaw.loss[-1] if flaw.loss else backward.site
                proof = f"at batch {backward.number}, {flaw.proof}"
                edit = without_call(flaw) if flaw.source else flaw.edit
                self.report(self.KINDS[flaw.kind], site, proof, edit, **flaw.fields)
        for looks in self._terms.values():
            self._judge_term(looks)

    def _judge_term(self, looks: list[tuple[Backward, LossTerm]]) -> None:
        """Report a term of a loss that was computed from stepped weights and whose graph contains none of them.

        A term that is the result of a loss function is also reported if it was computed from no weight in an optimizer.
        """
        covered, training, useless = self.state.covered, self.state.training, []
        for backward, term in looks:
            stepped = backward.stepped_params
            strange = term.by_loss_function and not term.made_of & covered and not term.reach & training
            cut_off = term.made_of & stepped and not term.reach & ~covered
            by_choice = term.reach and any(cut.no_grad for cut in term.cuts)
            if stepped and not term.reach & stepped and ((cut_off and not by_choice) or strange):
                useless.append((backward, term))
        used = [backward for backward, _ in looks if backward.stepped_params]
        if not useless or len(useless) < len(used):
            return
        backward, term = useless[-1]
        stepped, label = backward.stepped_params, f"`{term.text}`" if term.text else "the term"
        its_cuts = [cut for cut in term.cuts if cut.lost & stepped or not cut.inputs or cut.name in TAKES_NUMBERS]
        site = term.site if term.site[1] else backward.site
        proof = (
            f"at batch {backward.number}, {label} has no gradient for any of the {how_many(stepped)} that were stepped"
        )
        if term.made_of & stepped:
            code = self.PENALTY if its_cuts and its_cuts[0].name == "grad" else self.LOSS_TERM_DETACHED
            self.report(code, backward.site, proof, partial(cut_place, its_cuts))
        else:
            name = self.context.part_name(term.made_of) if term.made_of else ""
            sources = " and ".join(f"`{source}`" for source in (*term.sources, name) if source) or "data"
            self.report(self.OF_OTHERS, site, proof, cause_at(site), sources=sources)


_MAX_PASSES = 256
_MIN_SCALED_NANS = 8  # NaN losses in a row; a scaler may skip a few steps first, since its initial scale is too large
_FIXES = {
    "torch.log": "Keep the input of the logarithm above 0, for example with clamp_min(1e-8), or use the logits.",
    "division": "Keep the divisor away from 0, for example by adding 1e-8 to it.",
    "torch.exp": "Keep the input of the exponential below 80, for example with clamp(max=80), or use torch.logsumexp.",
    "softmax": "Leave at least one entry of each row unmasked.",
    "mean over": "Leave the mean out where nothing is selected.",
    "cross_entropy": "Skip the batches in which no target is left.",
    "": "Keep the input of this operation in the range where its result and its gradient are finite.",
}


class NanLoss(Rule):
    """The loss is NaN or infinite, a step applies its gradients, and the loss does not become finite again.

    The value is read when ``backward()`` begins or, on a GPU, when values are next fetched. On a CPU, tensors saved in
    the graph of the first such loss show the operation that made NaN, and the next traced pass shows its line. Nothing
    is reported if the loop skips the step or repairs the gradients, except for eight NaN losses in a row with a scaler.
    """

    NAN_LOSS = Code(
        "nan-loss",
        "08_mixed_precision",
        severity="warning",
        message="The loss is {number} from batch {batch} on: which operation made it is not known.",
        fix="Run a few batches under torch.autograd.set_detect_anomaly(True): it names the operation.",
    )
    DIVERGED = NAN_LOSS.with_(
        message="The loss is {number} from batch {batch} on: it grew from batch to batch, as it does when the learning "
        "rate is too large.",
        fix="Use a smaller learning rate, or clip the gradients.",
    )
    OPERATION = NAN_LOSS.with_(
        message="The loss is {number} from batch {batch} on: the first operation whose result is not finite is {what}.",
        fix="{how}",
    )
    DATA = NAN_LOSS.with_(
        message="The loss is {number} from batch {batch} on: {what} already contain NaN.",
        fix="Find the rows of the data that hold NaN, and leave them out or fill them in.",
    )
    WEIGHTS = NAN_LOSS.with_(
        message="The loss is {number} from batch {batch} on: the update before it made weights NaN or infinite.",
    )
    SLOPE = NAN_LOSS.with_(
        message="The loss is {number} from batch {batch} on: the update before it made weights NaN or infinite, and "
        "the graph has {what}, whose gradient is infinite at the edge of its range.",
        fix="{how}",
    )

    def _begin(self) -> None:
        self._first: dict[int, Backward] = {}  # call path -> first pass of its latest series of non-finite losses
        self._flaws: dict[int, LossFlaw] = {}
        self._stepped: dict[int, tuple[int, int]] = {}  # pass number -> number and parameters of the step that used it
        self._spoilt: set[int] = set()  # call paths with non-finite weights in a pass after their first non-finite loss
        self._proven: set[int] = set()  # call paths whose loss is known to stay non-finite

    def backward(self, backward: Backward) -> None:
        loss, path = backward.loss, backward.call_path
        if not isinstance(loss, float) or (path in self._proven and not backward.flaws):
            return
        for flaw in backward.flaws:
            if flaw.kind == "nan-spoilt":
                self._spoilt.add(path)
            elif flaw.kind.startswith("nan-") and (path not in self._flaws or flaw.edit):
                self._flaws[path] = flaw
        if math.isfinite(loss):
            if path not in self._proven:
                self.times[path] = 0
                self._first.pop(path, None)
            return
        first = self._first.setdefault(path, backward)
        row = self.count(path)
        if path in self._proven or first is backward:
            return
        never_applied = backward.scaled and math.isnan(loss) and row >= _MIN_SCALED_NANS
        if never_applied or (first.number in self._stepped and self._stays(path, first)):
            self._proven.add(path)

    def step(self, facts: StepFacts) -> None:
        for first in self._first.values() if not facts.edited else ():
            if first in facts.fresh and len(self._stepped) < _MAX_PASSES:
                self._stepped[first.number] = facts.number, facts.step.params

    def end(self, *, normal: bool) -> None:
        """Report, once for each call path, a loss that stayed non-finite or whose step made weights non-finite."""
        for path, first in self._first.items():
            if path in self._proven or self._weights_lost(first):
                self._say(path, first)

    def _stays(self, path: int, first: Backward) -> bool:
        row = self.times[path]  # weights are checked only at powers of two, because reading them from a GPU blocks
        return path in self._spoilt or (row & (row - 1) == 0 and self._weights_lost(first))

    def _weights_lost(self, first: Backward) -> bool:
        _, params = self._stepped.get(first.number, (0, 0))
        floats = (p.detach() for _, p in self.log.index.alive(params) if p.is_floating_point())
        return any(not p.isfinite().all() for p in floats)

    def _say(self, path: int, first: Backward) -> None:
        flaw, losses = self._flaws.get(path, LossFlaw("")), self.state.losses[path]
        before = [short(loss) for loss in losses][-3:]
        update, _ = self._stepped.get(first.number, (0, 0))
        proof = f"batch {first.number} is the first whose loss is {short(first.loss)}"
        proof += f"; the losses before it were {', '.join(before)}" if before else ""
        proof += f"; update {update} applied its gradients" if update else ""
        weights = self.SLOPE if flaw.proof else self.WEIGHTS
        codes = {"nan-data": self.DATA, "nan-operation": self.OPERATION, "nan-weights": weights}
        grew = flaw.kind != "nan-data" and _grew(losses)
        code, edit = (self.DIVERGED, None) if grew else (codes.get(flaw.kind, self.NAN_LOSS), flaw.edit)
        how = next(text for part, text in _FIXES.items() if part in flaw.proof)
        number = "NaN" if math.isnan(first.loss) else "infinite"
        self.report(code, first.site, proof, edit, number=number, batch=first.number, what=flaw.proof, how=how)


def _grew(losses: deque[float]) -> bool:
    sizes = [abs(loss) for loss in losses]
    return len(sizes) > 1 and sizes[-1] >= 0.1 * max(sizes) and max(sizes) > 1000 * max(min(sizes), 1e-3)


_GRAPH_COUNTS = 5  # number of rising counts of live graphs in a row that show a leak: a cache would be full before
_MIN_GRAPHS, _MIN_BATCHES = 6, 3


class CarriedGraph(Rule):
    """The graph of the loss grows from batch to batch, or a variable or forward hook keeps graphs of past batches."""

    RETAIN_GRAPH_GROWTH = Code(
        "retain-graph-growth",
        "01_autograd",
        "What is freed",
        message="Each backward() goes back through all earlier batches: retain_graph=True keeps their graphs, and what "
        "is carried from batch to batch is never detached.",
        fix="Detach what is carried from one batch to the next, and call backward() without retain_graph=True.",
    )
    GRAPH_RETAINED_MEMORY_LEAK = Code(
        "graph-retained-memory-leak",
        "10_loop_doctor",
        "Fine, until it is killed",
        message="`{name}` keeps the graphs of past batches alive: what is added to it still has its graph, so memory "
        "grows with every batch.",
        fix="Store what is added to `{name}` without its graph: detach() it, or take the number with item().",
    )
    STATE_WITH_GRAPH = GRAPH_RETAINED_MEMORY_LEAK.with_(
        severity="hint",
        message="`{name}` carries its graph from batch to batch: memory grows until it starts anew.",
        fix="Detach `{name}` between two batches if no gradient goes back through earlier ones.",
    )
    KEPT_BY_HOOK = GRAPH_RETAINED_MEMORY_LEAK.with_(
        message="A forward hook keeps outputs with their graphs in `{name}`: memory grows with every batch.",
        fix="Store output.detach(), and remove the hook with handle.remove() when it has done its work.",
    )

    def _begin(self) -> None:
        self._nodes: defaultdict[Any, deque[tuple[int, int]]] = defaultdict(lambda: deque(maxlen=16))
        self._hooked: deque[int] = deque(maxlen=_GRAPH_COUNTS)  # numbers of outputs that a hook held at the last checks
        self._newest: deque[Any] = deque(maxlen=_GRAPH_COUNTS)

    def backward(self, backward: Any) -> None:
        if backward.nodes:
            self._nodes[backward.site].append((backward.number, backward.nodes))
            self._growing(backward.site)
        if backward.number % LOOK_EVERY == 0:
            self._newest.append(backward)
            self._leaking(backward)

    def _growing(self, site: Any) -> None:
        counts = self._nodes[site]
        sizes = [size for _, size in counts]
        rising = all(later > earlier for earlier, later in pairwise(sizes[-5:]))
        if len(sizes) >= 5 and rising and sizes[-1] >= 2 * sizes[-5] - sizes[-5] // 2:
            (first, few), (last, many) = counts[0], counts[-1]
            proof = f"the graph had {few} nodes at batch {first} and {many} at batch {last}"
            self.report(self.RETAIN_GRAPH_GROWTH, site, proof, Cause(*site))

    def _leaking(self, newest: Any) -> None:
        holder, counts = newest.holder, [backward.alive for backward in self._newest]
        if holder is not None and holder.hook:
            self._hooked.append(holder.batches)
            if len(self._hooked) == _GRAPH_COUNTS and all(few < many for few, many in pairwise(self._hooked)):
                before = f"and {self._hooked[0]} some batches before"
                proof = f"at batch {newest.number} it held {holder.batches} outputs, {before}"
                self.report(self.KEPT_BY_HOOK, holder.site, proof, Cause(*holder.site), name=holder.name)
            return
        if holder is None or holder.batches < _MIN_BATCHES or self.context.has_finding(self.RETAIN_GRAPH_GROWTH):
            return
        if len(counts) < _GRAPH_COUNTS or counts[-1] < _MIN_GRAPHS or not all(a < b for a, b in pairwise(counts)):
            return  # the number of graphs does not grow: each update may need only those of the update before
        proof = f"at batch {newest.number} `{holder.name}` held graphs of at least {holder.batches} earlier batches"
        if holder.carried:
            self.report(self.STATE_WITH_GRAPH, holder.site, proof, name=holder.name)
        else:
            edit = partial(without_graph, holder)
            self.report(self.GRAPH_RETAINED_MEMORY_LEAK, holder.site, proof, edit, name=holder.name)
