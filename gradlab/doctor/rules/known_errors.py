"""A table that explains PyTorch's errors in the learner's terms, and the rule that applies it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Literal

import torch

from ..._frames import Owner, code_owner, variables
from ..events import NO_SITE, Backward, Site
from ..finding import Cause, Code, Edit
from ..graphs.autograd_graph import grad_fn_of, leaves
from ..source.carried import carried_state, given_between, overwritten
from ..source.cuts import cut_place
from ..source.syntax import cause_at, function_around, nodes_at, reworded, single_or_none, source_line
from ..source.wiring import frozen_by
from .base import Rule
from .losses import NanLoss
from .scaling import Clipping, Scaling, missing_update
from .scheduling import Scheduling
from .stepping import EmptyStep

TORCH = str(Path(torch.__file__).parent) + os.sep
_OF_TENSORS = re.compile(r"[Tt]ensor|\bdimension \d|out of bounds for dimension|\bdtype\b")
Where = Edit | Cause | None | Literal[False]
"""The edit or location from a row of the table, None if it is unknown, False if the row does not explain the error."""


def _all_frozen(crash: KnownErrors) -> Where:
    context = crash.context
    for optimizer, params in context.state.params_of.items():
        if params and context.log.index.frozen(params) == params:
            crash.site = context.made_at(optimizer, crash.site)
            return frozen_by(context.log.files(), context.all_names(params))
    return False


def _outside_closure(crash: KnownErrors) -> Where:
    """Return the line of a forward pass outside step()'s closure, or None for several lines, or False for no line."""
    files = [frame.f_code.co_filename for frame, _ in crash.trace]
    optim = next((index for index, file in enumerate(files) if file.startswith(f"{TORCH}optim")), 0)
    callers = [(file, line) for file, (frame, line) in zip(files[:optim], crash.trace, strict=False) if is_users(frame)]
    lines_of_ops = [op.lines for op in crash.newest.ops if any(op_input.name == "parameter" for op_input in op.inputs)]
    if not callers or not lines_of_ops or any(callers[-1] in lines for lines in lines_of_ops):
        return False
    scope = function_around(callers[-1])
    places = {next((site for site in lines if function_around(site) is scope), NO_SITE) for lines in lines_of_ops}
    return cause_at(single_or_none(places) or NO_SITE)


def _carried(crash: KnownErrors) -> Where:
    return crash.newest.carried and carried_state(crash.log.path(crash.site), crash.log.files(), crash.values)


def _undetached(crash: KnownErrors) -> Where:
    """Return the edit that detaches a network's output in one of two losses with a step between them, or False.

    The output is detached in the second loss if the step has changed the network's weights, else in the first loss.
    """
    state, (file, line), fixes_by_cause = crash.state, crash.site, dict[Cause, str]()
    step, params = state.last_step.site, state.last_step.params
    scope = function_around(crash.site)
    if not 0 < step[1] < line or function_around(step) is not scope or not state.covered & ~params:
        return False
    for name, value in crash.values.items():
        before, after = (given_between(scope, file, name, *lines) for lines in ((1, step[1]), (step[1] + 1, line)))
        if (node := grad_fn_of(value)) is not None and before and after:
            moved = crash.log.index.known_bits(leaf for leaf, _ in leaves(node)) & params
            fixes_by_cause |= dict.fromkeys(after if moved else before, name)
    cause = single_or_none(fixes_by_cause)
    return cause is not None and reworded(cause, f"{fixes_by_cause[cause]}.detach()")


def _by_step(crash: KnownErrors) -> Where:
    """Return the line of the last step() if the error names the shape of a parameter of that step, otherwise False."""
    step, message_text = crash.state.last_step, str(crash.error)
    shapes = [sorted(param.shape) for _, param in crash.log.index.alive(step.params)]
    weight = "which is output" not in message_text or re.search(r"output 0 of (AsStrided|T)(Backward0)?,", message_text)
    return bool(weight) and sorted(_shape(message_text)) in shapes and cause_at(step.site)


def _in_place(crash: KnownErrors) -> Where:
    output = re.search(r"output \d+ of (\w+?)(Backward\d*)?,", str(crash.error))
    return overwritten(crash.newest.changes, output[1].lower() if output else "", _shape(str(crash.error)))


def _shape(text: str) -> tuple[int, ...]:
    shape = re.search(r"Tensor \[([\d, ]*)\]", text)
    return tuple(map(int, re.findall(r"\d+", shape[1]))) if shape else ()


def _second_scaler_step(crash: KnownErrors) -> Where:
    crash.site = crash.log.scaler_site if "unscale_" in str(crash.error) else crash.site
    return missing_update(crash.context, crash.site)


def _left_open(crash: KnownErrors) -> Where:
    """Return the edit that inserts update() if unscaled gradients were cleared without a step(), otherwise False."""
    entries = [entry for group in crash.state.groups(crash.newest.added) for entry in group.fresh]
    is_scaled = entries and not any(entry.unscaled for entry in entries)
    return missing_update(crash.context, crash.site) if is_scaled else False


def _unscaled_loss(crash: KnownErrors) -> Where:
    crash.site = crash.newest.site
    return Cause(*crash.site)


def _cleared(crash: KnownErrors) -> Where:
    sites = [clear.site for since in crash.state.since.values() for clear in since.clearings if clear.site[1]]
    crash.site = sites[-1] if sites else crash.site
    return bool(sites) and Cause(*crash.site)


def _grad_is_none(crash: KnownErrors) -> Where:
    of_none = isinstance(crash.error, (AttributeError, TypeError)) and ".grad" in source_line(crash.site)
    return of_none and Cause(*(crash.state.last_clear if crash.state.last_clear[1] else crash.site))


RAISED = Code(
    "raised-by-pytorch",
    message="PyTorch cannot do what this line asks for, and the block ends with its error.",
    fix="Compare the shapes, dtypes and devices of the tensors in this line with what the error names.",
)
"""The code for errors and warnings from PyTorch that no other code explains."""
_FIXES = {
    "Expected more than 1 value per channel": "BatchNorm cannot take a variance over one row: give the DataLoader "
    "drop_last=True, or use a larger batch.",
    "[Ii]nference(_mode| tensor)": "Use torch.no_grad() in place of torch.inference_mode() for what training needs "
    "later: its tensors can be part of a graph.",
    "shapes cannot be multiplied": "Give the layer as many in_features as the last dimension of its input has.",
    "same device": "Move the model and each batch to the same device, with .to(device).",
    "same dtype|expected scalar type|Found dtype": "Convert one of the two tensors to the dtype of the other: .float() "
    "for inputs and real targets, .long() for class indices.",
    "Target .* is out of bounds": "Class numbers go from 0 to C - 1: give the last layer C outputs, or correct the "
    "labels.",
    "leaf Variable that requires grad": "Write to a weight inside torch.no_grad(), or make a new tensor instead.",
    "only for scalar outputs": "Call backward() on one number, such as loss.mean().",
    "numpy.. on Tensor that requires grad": "Call .detach() before .numpy().",
}
"""Pattern in an error message -> general advice."""
_FROZEN = EmptyStep.OPTIMIZER_PARAMS_FROZEN.with_(
    message="None of an optimizer's parameters requires a gradient, so backward() has nowhere to go."
)
_NO_GRAPH = EmptyStep.GRAPH_BROKEN.with_(
    message="The loss is not connected to any parameter, so there is no graph for backward() to follow."
)
_OUTSIDE = _NO_GRAPH.with_(
    message="The forward pass is outside the closure of step(), so the loss inside has no graph to any parameter.",
    fix="Move the forward pass into the closure, without detach(): step() calls the closure several times, and each "
    "call needs a new graph.",
)
_CARRIED_STATE = Code(
    "carried-state-not-detached",
    "02_backward_adds",
    "A long sequence in pieces",
    message="This loss depends on a state of the last update, carried over without detach(): its graph has been freed.",
    fix="Detach the state before the next batch, and keep what detach() returns.",
)
_BACKWARD_TWICE = Code(
    "backward-twice",
    message="backward() goes a second time through a graph that the first one has freed.",
    fix="Call backward() once, on the sum of the losses that share a graph. If the second loss belongs to another "
    "net, detach the input of this net.",
)
_UNDETACHED = _BACKWARD_TWICE.with_(
    message="This loss goes back into another net, through a graph that an earlier backward() has freed.",
    fix="Detach the other net's output where it is only an input.",
)
_GRAPH_OUTSIDE = _BACKWARD_TWICE.with_(
    message="The forward pass is outside the closure of step(): its graph is freed by the closure's first call.",
    fix=_OUTSIDE.fix.replace(", without detach()", ""),
)
_MODIFIED_IN_PLACE = Code(
    "modified-in-place",
    message="A tensor that backward() needs was overwritten by an in-place operation after it had been used.",
    fix="Make a new tensor instead: x = x + 1 for x += 1, torch.where(...), a product with a mask or a clone() for "
    "x[...] = 0, and no inplace=True.",
)
_MODIFIED_BY_STEP = _MODIFIED_IN_PLACE.with_(
    message="A weight that backward() needs was overwritten by a step() after it had been used.",
    fix="Call backward() on this loss before that step, or compute the loss after it.",
)
_NO_UPDATE = Scaling.SCALER_STEP_WITHOUT_UPDATE.with_(
    message="scaler.step() is called again although scaler.update() has not closed the last update.",
    fix="Call scaler.update() once for each update, after the last scaler.step().",
)
_LEFT_OPEN = _NO_UPDATE.with_(
    message="scaler.update() was not called for an update whose step() was left out, so the scaler has not closed it.",
    fix="Call scaler.update() for every update, also where you leave the step out.",
)
_UNSCALE_TWICE = RAISED.with_(
    message="scaler.unscale_() is called twice for one update: the gradients may be divided only once.",
    fix="Call scaler.unscale_() once for each update, right before clipping.",
)
_NOT_REACHED = EmptyStep.STEP_WITHOUT_BACKWARD.with_(
    message="scaler.step() finds no gradient: no backward() has reached this optimizer's parameters.",
)
_SCHEDULE_OVER = Scheduling.SCHEDULER_OUTPACES_OPTIMIZER.with_(
    severity="error",
    message="The scheduler has come to the end of its schedule while training goes on.",
    fix="Make the schedule as long as the training, and step the scheduler as often as the schedule expects.",
)
_NOTHING_TO_CLIP = Clipping.CLIP_BEFORE_BACKWARD.with_(
    message="The call comes before backward(), when there is no new gradient to clip.",
    fix="Move this line to after backward(), right before step().",
)
_NO_ROOM = RAISED.with_(
    notebook="09_gpu_memory",
    section="Will it fit?",
    message="The device has no room left for what this line asks for.",
    fix="Take a smaller batch and accumulate, use checkpointing, or train in bf16: gradlab.forecast shows what fits.",
)
_GRAD_IS_NONE = Code(
    "grad-none-after-zero-grad",
    "05_set_to_none",
    "Code that trips over None",
    message="`.grad` is None here: zero_grad() sets it to None, and before the first backward() there is none.",
    fix="Read `.grad` between backward() and zero_grad(), or leave out the parameters whose `.grad` is None.",
)

_TWICE, _CHANGED = "Trying to backward through the graph a second time", "modified by an inplace operation"
_NO_GRAD_FN, _NO_INF_CHECKS = "does not require grad and does not have a grad_fn", "No inf checks were recorded"

TABLE: tuple[tuple[str, Code, Callable[[KnownErrors], Where]], ...] = (
    (_NO_GRAD_FN, _FROZEN, _all_frozen),
    (_NO_GRAD_FN, _OUTSIDE, _outside_closure),
    (_NO_GRAD_FN, _NO_GRAPH, lambda crash: cut_place(crash.newest.cuts)),
    (_TWICE, _GRAPH_OUTSIDE, _outside_closure),
    (_TWICE, _CARRIED_STATE, _carried),
    (_TWICE, _UNDETACHED, _undetached),
    (_TWICE, _BACKWARD_TWICE, lambda crash: Cause(*crash.site) if len(crash.log.path(crash.site)) == 1 else None),
    (_CHANGED, _CARRIED_STATE, _carried),
    (_CHANGED, _MODIFIED_BY_STEP, _by_step),
    (_CHANGED, _MODIFIED_IN_PLACE, _in_place),
    ("step() has already been called since the last update()", _NO_UPDATE, _second_scaler_step),
    ("unscale_() is being called after step()", _NO_UPDATE, _second_scaler_step),
    ("unscale_() has already been called", _LEFT_OPEN, _left_open),
    ("unscale_() has already been called", _UNSCALE_TWICE, lambda crash: Cause(*crash.site)),
    ("_scale is None", Scaling.NEVER_SCALED, _unscaled_loss),
    (_NO_INF_CHECKS, EmptyStep.ZERO_GRAD_BETWEEN_BACKWARD_AND_STEP, _cleared),
    (_NO_INF_CHECKS, _NOT_REACHED, lambda crash: None),
    ("The specified number of total steps is", _SCHEDULE_OVER, lambda crash: Cause(*crash.site)),
    (
        "nested_tensorlist[0].empty()",
        _NOTHING_TO_CLIP,
        lambda crash: "clip" in source_line(crash.site) and Cause(*crash.site),
    ),
    ("out of memory", _NO_ROOM, lambda crash: None),
    ("None", _GRAD_IS_NONE, _grad_is_none),
)
"""Rows of (part of a message, code, search for the location); the first row whose message and search apply is used."""


class KnownErrors(Rule):
    """A rule that explains the exception that ended the block, if PyTorch raised it or a row of TABLE fits."""

    site: Site
    """The line to report: the learner's line that raised the exception, unless a search sets another."""
    newest: Backward
    """The newest backward pass; an empty Backward if there was none."""

    def explain(self, error: BaseException) -> None:
        """Report an exception that PyTorch raised or that a row of TABLE fits, and ignore any other exception."""
        if not isinstance(error, Exception):
            return
        log, message_text, self.error = self.log, str(error), error
        self.trace = [*walk_tb(error.__traceback__)]
        users = [entry for entry in self.trace if is_users(entry[0])]
        frame, line = users[-1] if users else (None, 0)
        site = self.site = (frame.f_code.co_filename, line) if frame is not None else NO_SITE
        self.values = variables(frame) if frame is not None else {}
        self.newest = log.passes.newest or Backward(0, site)
        log.find_names(frame, params=log.index.all())
        for part, code, find in TABLE:
            if part in message_text and (edit := find(self)) is not False:
                source = "Python" if isinstance(error, (AttributeError, TypeError)) else "PyTorch"
                self.report(code, self.site, f"{source}: {first_sentence(message_text)}", edit)
                return
        if users and self._is_pytorchs(message_text) and not self.context.has_finding(NanLoss.NAN_LOSS):
            fixes = (RAISED.with_(fix=fix) for pattern, fix in _FIXES.items() if re.search(pattern, message_text))
            self.report(next(fixes, RAISED), site, f"PyTorch: {first_sentence(message_text)}")

    def _is_pytorchs(self, text: str) -> bool:
        """Return whether PyTorch raised the error, in its Python code or in C++ code called from the learner's line."""
        inner = self.trace[-1][0]
        if inner.f_code.co_filename.startswith(TORCH):
            return not isinstance(self.error, OSError) and not text.startswith("Caught ")  # re-raised from a worker
        raised = any(isinstance(node, (ast.Raise, ast.Assert)) for node in nodes_at(self.site))
        return is_users(inner) and not raised and (type(self.error) is RuntimeError or bool(_OF_TENSORS.search(text)))


KnownErrors.codes = frozenset({code.name: code for code in (*(row[1] for row in TABLE), RAISED)}.values())


def is_users(frame: FrameType) -> bool:
    """Return whether a frame runs the learner's own code."""
    return code_owner(frame.f_code.co_filename) is Owner.USER


def first_sentence(text: str) -> str:
    """Return the first sentence of an error message, without its full stop and cut to 160 characters."""
    return text.strip().splitlines()[0].partition(". ")[0][:160].rstrip(".") if text.strip() else ""
