"""PyTorch's own errors in the learner's terms."""

from __future__ import annotations

import re
from functools import partial
from types import TracebackType

from ..._frames import Owner, code_owner
from ...formatting import number_of
from ..events import NO_SITE, Site
from ..finding import Cause, Code
from ..source.carried import carried_state, only_in_place
from ..source.cuts import cut_before
from ..source.syntax import at, source_line
from ..source.wiring import frozen_by
from . import Rule
from .clipping import Clipping
from .scaling import NEVER_SCALED, Scaling, missing_update
from .scheduling import Scheduling
from .stepping import CLEARED_BEFORE_STEP, EmptyStep


class KnownErrors(Rule):
    """Explains the exception that has ended a loop, where its cause is known."""

    OPTIMIZER_PARAMS_FROZEN = EmptyStep.OPTIMIZER_PARAMS_FROZEN
    GRAPH_BROKEN = EmptyStep.GRAPH_BROKEN
    CARRIED_STATE_NOT_DETACHED = Code("carried-state-not-detached", "02_backward_adds", "A long sequence in pieces")
    BACKWARD_TWICE = Code("backward-twice")
    MODIFIED_IN_PLACE = Code("modified-in-place")
    SCALER_STEP_WITHOUT_UPDATE = Scaling.SCALER_STEP_WITHOUT_UPDATE
    UNSCALE_TWICE = Code("unscale-twice")
    GRAD_NONE_AFTER_ZERO_GRAD = Code("grad-none-after-zero-grad", "05_set_to_none", "Code that trips over None")
    OUT_OF_MEMORY = Code("out-of-memory", "09_gpu_memory", "Will it fit?")
    SCALER_BYPASSED = Scaling.SCALER_BYPASSED
    ZERO_GRAD_BETWEEN_BACKWARD_AND_STEP = EmptyStep.ZERO_GRAD_BETWEEN_BACKWARD_AND_STEP
    STEP_WITHOUT_BACKWARD = EmptyStep.STEP_WITHOUT_BACKWARD
    SCHEDULER_OUTPACES_OPTIMIZER = Scheduling.SCHEDULER_OUTPACES_OPTIMIZER
    CLIP_BEFORE_BACKWARD = Clipping.CLIP_BEFORE_BACKWARD

    def explain(self, error: BaseException) -> None:
        """Add a finding for an exception whose cause is known; others are left to speak for themselves."""
        said, frame = str(error), _frame(error.__traceback__)
        site = (frame.tb_frame.f_code.co_filename, frame.tb_lineno) if frame is not None else NO_SITE
        if frame is not None:
            self.context.log.find_names(frame.tb_frame, params=self.context.log.index.all())
        known = {
            "does not require grad and does not have a grad_fn": self._no_graph,
            "Trying to backward through the graph a second time": self._twice,
            "modified by an inplace operation": self._in_place,
            "step() has already been called since the last update()": self._second_scaler_step,
            "unscale_() has already been called": self._second_unscale,
            "unscale_() is being called after step()": self._second_scaler_step,
            "Attempted step but _scale is None": self._never_scaled,
            "Attempted unscale_ but _scale is None": self._never_scaled,
            "No inf checks were recorded for this optimizer": self._nothing_to_unscale,
            "The specified number of total steps is": self._schedule_at_its_end,
            "nested_tensorlist[0].empty()": self._nothing_to_clip,
            "out of memory": self._out_of_memory,
        }
        for words, finder in known.items():
            if words in said:
                finder(site, said)
                return
        if isinstance(error, (AttributeError, TypeError)) and "None" in said and ".grad" in source_line(site):
            self._grad_is_none(site)

    def _no_graph(self, site: Site, said: str) -> None:
        for optimizer, params in self.context.state.params_of.items():
            if params and self.context.log.index.frozen(params) == params:
                made = self.context.state.optimizers[optimizer].site
                self.report_as(
                    self.OPTIMIZER_PARAMS_FROZEN,
                    "error",
                    made if made != NO_SITE else site,
                    "None of this optimizer's parameters requires a gradient, so backward() has nowhere to go.",
                    f"{self.context.name(optimizer)} has {number_of(params.bit_count(), 'parameter')}, with "
                    "requires_grad=False throughout",
                    "p.requires_grad_(True)  # for the parameters that should learn",
                    partial(self._frozen, params),
                )
                return
        self.report_as(
            self.GRAPH_BROKEN,
            "error",
            site,
            "The loss is not connected to any parameter, so there is nothing to go back through.",
            "PyTorch: element 0 of tensors does not require grad",
            "# compute the loss from the model's own output: no .detach(), .data, .item(), torch.tensor(...) or "
            "no_grad()",
            lambda: cut_before(self.context.log.path(site)),
        )

    def _frozen(self, params: int) -> Cause | None:
        return frozen_by(self.context.log.files(), self.context.all_names(params))

    def _carried(self, site: Site, said: str) -> None:
        self.report_as(
            self.CARRIED_STATE_NOT_DETACHED,
            "error",
            site,
            "This loss depends on a state of the last update, whose graph is gone: it was carried on undetached.",
            _said(said),
            "state = state.detach()  # before the next batch",
            lambda: carried_state(self.context.log.path(site), self.context.log.files()),
        )

    def _twice(self, site: Site, said: str) -> None:
        newest = self.context.log.newest
        if newest is not None and newest.carried:
            self._carried(site, said)
        else:
            self.report_as(
                self.BACKWARD_TWICE,
                "error",
                site,
                "backward() goes a second time through a graph that the first one has freed.",
                "PyTorch: trying to backward through the graph a second time",
                "(loss_a + loss_b).backward()  # once, for all losses that share a graph",
                Cause(*site) if len(self.context.log.path(site)) == 1 else None,
            )

    def _in_place(self, site: Site, said: str) -> None:
        newest = self.context.log.newest
        if newest is not None and newest.carried:
            self._carried(site, said)
            return
        self.report_as(
            self.MODIFIED_IN_PLACE,
            "error",
            site,
            "A tensor that backward() needs was overwritten after it had been used: by an in-place operation, or by a "
            "step() between forward and backward.",
            _said(said),
            "x = x + 1  # instead of x += 1; and all backward() calls before the first step()",
            lambda: self._overwritten(said),
        )

    def _overwritten(self, said: str) -> Cause | None:
        """Return the step() that changed a weight, or the one in-place operation in the functions that ran."""
        log = self.context.log
        steps = self.context.state.sites
        if re.search(r"output 0 of (AsStrided|T)(Backward0)?,", said):  # the transposed weight of a linear layer
            return at(steps.get(self.context.state.last_stepped, NO_SITE))
        return only_in_place(log.files())

    def _second_scaler_step(self, site: Site, said: str) -> None:
        self.report_as(
            self.SCALER_STEP_WITHOUT_UPDATE,
            "error",
            self.context.log.scaler_step if "unscale_" in said else site,
            "scaler.step() is called again although scaler.update() has not closed the last update.",
            _said(said),
            "scaler.update()  # once an update, after the last scaler.step()",
            partial(missing_update, self.context, self.context.log.scaler_step if "unscale_" in said else site),
        )

    def _second_unscale(self, site: Site, said: str) -> None:
        self.report_as(
            self.UNSCALE_TWICE,
            "error",
            site,
            "scaler.unscale_() is called twice for one update: the gradients may be divided only once.",
            _said(said),
            "scaler.unscale_(optimizer)  # once, right before clipping",
        )

    def _grad_is_none(self, site: Site) -> None:
        self.report_as(
            self.GRAD_NONE_AFTER_ZERO_GRAD,
            "error",
            site,
            "`.grad` is None here: zero_grad() takes the tensor away, and before the first backward() there is none.",
            f"the line reads {source_line(site).strip()[:80]!r}",
            "if p.grad is not None: ...  # or read it between backward() and zero_grad()",
            at(self.context.state.last_clear if self.context.state.last_clear != NO_SITE else site),
        )

    def _out_of_memory(self, site: Site, said: str) -> None:
        self.report_as(
            self.OUT_OF_MEMORY,
            "error",
            site,
            "The device has no room left for what this line asks for.",
            _said(said),
            "# a smaller batch with accumulation, checkpointing, or bf16: gradlab.forecast says what would fit",
        )

    def _never_scaled(self, site: Site, said: str) -> None:
        newest = self.context.log.newest
        self.report_as(
            self.SCALER_BYPASSED,
            "error",
            newest.site if newest is not None else site,
            NEVER_SCALED.message,
            _said(said),
            "scaler.scale(loss).backward()",
        )

    def _nothing_to_unscale(self, site: Site, said: str) -> None:
        clearings = [
            cleared
            for since in self.context.state.since.values()
            for cleared in since.clearings
            if cleared.clear.site != NO_SITE
        ]
        if clearings:
            self.report_as(
                self.ZERO_GRAD_BETWEEN_BACKWARD_AND_STEP,
                "error",
                clearings[-1].clear.site,
                CLEARED_BEFORE_STEP,
                _said(said),
                "optimizer.zero_grad()  # move it above the backward pass, or below scaler.step(optimizer)",
            )
            return
        self.report_as(
            self.STEP_WITHOUT_BACKWARD,
            "error",
            site,
            "scaler.step() finds no gradient: no backward() has reached this optimizer's parameters.",
            _said(said),
            "scaler.scale(loss).backward()  # before scaler.step(optimizer)",
        )

    def _schedule_at_its_end(self, site: Site, said: str) -> None:
        self.report_as(
            self.SCHEDULER_OUTPACES_OPTIMIZER,
            "error",
            site,
            "The scheduler has come to the end of its schedule while training goes on: it steps more often than "
            "planned.",
            _said(said),
            "scheduler.step()  # once an update, and total_steps = number of updates",
        )

    def _nothing_to_clip(self, site: Site, said: str) -> None:
        if "clip" in source_line(site):
            self.report_as(
                self.CLIP_BEFORE_BACKWARD,
                "error",
                site,
                "The call comes before backward(), when there is no new gradient to clip.",
                "PyTorch finds no gradient in the list that is to be clipped",
                "torch.nn.utils.clip_grad_value_(model.parameters(), value)  # after backward(), right before step()",
            )


def _said(words: str) -> str:
    """Return the first sentence of an error, which may be long."""
    return f"PyTorch: {words.splitlines()[0].partition('. ')[0][:160].rstrip('.')}"


def _frame(trace: TracebackType | None) -> TracebackType | None:
    """Return the innermost frame of the learner's own code."""
    found = None
    while trace is not None:
        if code_owner(trace.tb_frame.f_code.co_filename) is Owner.USER:
            found = trace
        trace = trace.tb_next
    return found
