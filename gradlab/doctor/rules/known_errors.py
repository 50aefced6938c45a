"""PyTorch's own errors in the learner's terms: a table."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from pathlib import Path
from traceback import walk_tb
from types import FrameType

import torch
from torch import Tensor, nn

from ..._frames import Owner, code_owner, variables
from ..events import NO_SITE, Site, bit_positions
from ..finding import Cause, Code, Edit
from ..frames import FrameValues
from ..graphs.autograd_graph import leaves
from ..source.calls import calls_on, receiver
from ..source.carried import carried_state, given_between, overwritten
from ..source.cuts import cut_place
from ..source.syntax import (
    cause_at,
    dotted,
    function_around,
    node_place,
    nodes_at,
    own_nodes,
    reworded,
    single_or_none,
    source_line,
)
from ..source.wiring import frozen_by
from .base import Rule
from .clipping import Clipping
from .nan_loss import NanLoss
from .scaling import NEVER_SCALED, Scaling, missing_update
from .scheduling import Scheduling
from .stepping import EmptyStep

TORCH = str(Path(torch.__file__).parent) + os.sep
_DOCTOR = str(Path(__file__).parents[1])
_OF_TENSORS = re.compile(r"[Tt]ensor|\bdimension \d|out of bounds for dimension|\bdtype\b")
Located = tuple[Site, Edit | Cause | None]
"""The line where it shows, and the place to edit."""


def _here(crash: KnownErrors) -> Located:
    return crash.site, Cause(*crash.site)


def _nowhere(crash: KnownErrors) -> Located:
    return crash.site, None


def _all_frozen(crash: KnownErrors) -> Located | None:
    """Find an optimizer none of whose parameters requires a gradient."""
    log, state = crash.context.log, crash.context.state
    for optimizer, params in state.params_of.items():
        if params and log.index.frozen(params) == params:
            site = crash.context.made_at(optimizer, crash.site)
            return site, frozen_by(log.files(), crash.context.all_names(params))
    return None


def _cut(crash: KnownErrors) -> Located:
    newest = crash.context.log.passes.newest
    return crash.site, cut_place(newest.cuts) if newest is not None else None


def _outside_closure(crash: KnownErrors) -> Located | None:
    """Find what the closure of a step() takes from outside: made by a model there, or with a graph of its own."""
    optim = [at for at, (one, _) in enumerate(crash.trace) if one.f_code.co_filename.startswith(TORCH + "optim")]
    closure = next((one for one in crash.trace[max(optim) :] if is_users(one[0])), None) if optim else None
    if closure is None:
        return None
    values, scope = FrameValues(closure[0]), function_around((closure[0].f_code.co_filename, closure[1]))
    functions = [values.of(node.func) for node in ast.walk(scope) if isinstance(node, ast.Call)]
    if any(isinstance(one, nn.Module) and any(True for _ in one.parameters()) for one in functions):
        return None  # the forward pass is inside
    nodes = [node for node in ast.walk(scope) if isinstance(node, (ast.Name, ast.Attribute))]
    names = {dotted(node) for node in nodes} - {dotted(node) for node in nodes if isinstance(node.ctx, ast.Store)}
    made: dict[bool, set[Cause]] = {True: set(), False: set()}
    for frame, line in [one for one in crash.trace[: max(optim)] if is_users(one[0])]:
        file, values = frame.f_code.co_filename, FrameValues(frame)
        for node in own_nodes(function_around((file, line))):
            if isinstance(node, ast.Assign):
                tensors = [values.of(target) for target in node.targets if dotted(target) in names]
                functions = [values.of(one.func) for one in ast.walk(node.value) if isinstance(one, ast.Call)]
                by_model = any(isinstance(one, nn.Module) for one in functions)
                if any(isinstance(one, Tensor) and (by_model or one.grad_fn is not None) for one in tensors):
                    made[by_model].add(node_place(file, node))
    found = made[True] or made[False]
    return (crash.site, single_or_none(found)) if found else None


def _carried(crash: KnownErrors) -> Located | None:
    """Find the state if the pass went back into the graph of the last update."""
    log, newest = crash.context.log, crash.context.log.passes.newest
    if newest is None or not newest.carried:
        return None
    values = variables(crash.frame) if crash.frame is not None else {}
    return crash.site, carried_state(log.path(crash.site), log.files(), values)


def _undetached(crash: KnownErrors) -> Located | None:
    """Find one net's output in two losses with a step between them: one of these is to leave that net alone.

    If the step has moved that net, it is the second, which would go through weights that are no more; else the first.
    """
    state, (file, line) = crash.context.state, crash.site
    step, held = state.sites.get(state.last_stepped, NO_SITE), state.params_of.get(state.last_stepped, 0)
    scope, several = function_around(crash.site), state.covered() & ~held
    if crash.frame is None or scope is None or not 0 < step[1] < line or function_around(step) is not scope:
        return None
    found: dict[Cause, str] = {}
    for name, value in variables(crash.frame).items():
        before, after = (given_between(scope, file, name, *lines) for lines in ((1, step[1]), (step[1] + 1, line)))
        if several and isinstance(value, Tensor) and value.grad_fn is not None and before and after:
            moved = crash.context.log.index.known_bits(leaf for leaf, _ in leaves(value.grad_fn)) & held
            found |= dict.fromkeys(after if moved else before, name)
    place = single_or_none(found)
    return (crash.site, reworded(place, f"{found[place]}.detach()")) if place is not None else None


def _second_pass(crash: KnownErrors) -> Located:
    return crash.site, Cause(*crash.site) if len(crash.context.log.path(crash.site)) == 1 else None


def _by_step(crash: KnownErrors) -> Located | None:
    """Find the step() that has overwritten a weight, as the shape in the error tells."""
    state, index, said = crash.context.state, crash.context.log.index, str(crash.error)
    shape = re.search(r"Tensor \[([\d, ]*)\]", said)
    weight = "which is output" not in said or re.search(r"output 0 of (AsStrided|T)(Backward0)?,", said)
    params = [index.param(one) for one in bit_positions(state.params_of.get(state.last_stepped, 0))]
    shapes = {tuple(sorted(param.shape)) for param in params if param is not None}
    if not weight or shape is None or tuple(sorted(map(int, re.findall(r"\d+", shape[1])))) not in shapes:
        return None
    return crash.site, cause_at(state.sites.get(state.last_stepped, NO_SITE))


def _in_place(crash: KnownErrors) -> Located:
    made = re.search(r"output \d+ of (\w+?)(Backward\d*)?,", str(crash.error))
    shape = re.search(r"Tensor \[([\d, ]*)\]", str(crash.error))
    newest, sizes = crash.context.log.passes.newest, re.findall(r"\d+", shape[1]) if shape else []
    changes = newest.changes if newest is not None else ()
    return crash.site, overwritten(changes, made[1].lower() if made else "", tuple(map(int, sizes)))


def _second_scaler_step(crash: KnownErrors) -> Located:
    step = crash.context.log.scaler_site if "unscale_" in str(crash.error) else crash.site
    return step, missing_update(crash.context, step)


def _left_open(crash: KnownErrors) -> Located | None:
    """Find the update that was left without step() and update(): its unscaled gradients were cleared since."""
    inner, context = crash.trace[-1][0], crash.context
    optimizer = context.log.optimizers.find(inner.f_locals["optimizer"]) if "optimizer" in inner.f_locals else None
    groups = context.state.groups(optimizer.params) if optimizer is not None else []
    held = [one for group in groups for one in group.fresh]
    if not held or any(one.unscaled for one in held):
        return None
    scaler, scope = receiver(crash.site, "unscale_"), function_around(crash.site)
    steps = calls_on(scope, scaler, "step") if scaler else []
    return crash.site, missing_update(context, (crash.site[0], steps[0].lineno)) if steps else None


def _unscaled_loss(crash: KnownErrors) -> Located:
    newest = crash.context.log.passes.newest
    site = newest.site if newest is not None else crash.site
    return site, Cause(*site)


def _cleared(crash: KnownErrors) -> Located | None:
    """Find the line that has cleared the gradients after backward()."""
    clearings = [one.site for since in crash.context.state.since.values() for one in since.clearings]
    sites = [site for site in clearings if site != NO_SITE]
    return (sites[-1], Cause(*sites[-1])) if sites else None


def _clips(crash: KnownErrors) -> Located | None:
    return _here(crash) if "clip" in source_line(crash.site) else None


def _grad_is_none(crash: KnownErrors) -> Located | None:
    if not isinstance(crash.error, (AttributeError, TypeError)) or ".grad" not in source_line(crash.site):
        return None
    return crash.site, cause_at(crash.context.state.last_clear) or Cause(*crash.site)


RAISED = Code(
    "raised-by-pytorch",
    message="PyTorch cannot do what this line asks for, and the block ends with its error.",
    fix="Compare the shapes, dtypes and devices of the tensors in this line with what the error names.",
)
"""Whatever PyTorch itself has said, as an error or as a warning, and no other code explains."""
_FIXES = {
    "Expected more than 1 value per channel": "BatchNorm cannot take a variance over one row: give the DataLoader "
    "drop_last=True, or use a larger batch.",
    "[Ii]nference(_mode| tensor)": "Use torch.no_grad() in place of torch.inference_mode() for what training needs "
    "later: its tensors can be part of a graph.",
    "shapes cannot be multiplied": "Give the layer as many in_features as the last dimension of its input has.",
    "same device": "Move the model and each batch to the same device, with .to(device).",
    "same dtype|expected scalar type|Found dtype": "Convert one of the two tensors to the dtype of the other: .float() "
    "for inputs and real targets, .long() for class numbers.",
    "Target .* is out of bounds": "Class numbers go from 0 to C - 1: give the last layer C outputs, or correct the "
    "labels.",
    "leaf Variable that requires grad": "Write to a weight inside torch.no_grad(), or make a new tensor instead.",
    "only for scalar outputs": "Call backward() on one number, such as loss.mean().",
    "numpy.. on Tensor that requires grad": "Call .detach() before .numpy().",
}
"""Words of an error, as a pattern, and what helps in general."""
_FROZEN = EmptyStep.OPTIMIZER_PARAMS_FROZEN.with_(
    message="None of an optimizer's parameters requires a gradient, so backward() has nowhere to go."
)
_NO_GRAPH = EmptyStep.GRAPH_BROKEN.with_(
    message="The loss is not connected to any parameter, so there is nothing to go back through."
)
_OUTSIDE = _NO_GRAPH.with_(
    message="The forward pass stands outside the closure of step(), so the loss inside has no graph to any parameter.",
    fix="Move the forward pass into the closure, without detach(): step() calls the closure several times, and each "
    "call needs a new graph.",
)
_CARRIED_STATE = Code(
    "carried-state-not-detached",
    "02_backward_adds",
    "A long sequence in pieces",
    message="This loss depends on a state of the last update, whose graph is gone: it was carried on undetached.",
    fix="Detach the state before the next batch, and keep what detach() returns.",
)
_BACKWARD_TWICE = Code(
    "backward-twice",
    message="backward() goes a second time through a graph that the first one has freed.",
    fix="Call backward() once, on the sum of the losses that share a graph. If the second loss is that of another net, "
    "detach what this net is given.",
)
_UNDETACHED = _BACKWARD_TWICE.with_(
    message="This loss goes back into another net, through a graph that an earlier backward() has freed.",
    fix="Detach the other net's output where it is only an input.",
)
_GRAPH_OUTSIDE = _BACKWARD_TWICE.with_(
    message="The forward pass stands outside the closure of step(): its graph is gone after the closure's first call.",
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
    fix="Make the schedule as long as the training, and step the scheduler as often as its schedule plans.",
)
_NOTHING_TO_CLIP = Clipping.CLIP_BEFORE_BACKWARD.with_(
    message="The call comes before backward(), when there is no new gradient to clip.",
    fix="Move this line to after backward(), right before step().",
)
_NO_ROOM = RAISED.with_(
    notebook="09_gpu_memory",
    section="Will it fit?",
    message="The device has no room left for what this line asks for.",
    fix="Take a smaller batch and accumulate, use checkpointing, or train in bf16: gradlab.forecast says what fits.",
)
_GRAD_IS_NONE = Code(
    "grad-none-after-zero-grad",
    "05_set_to_none",
    "Code that trips over None",
    message="`.grad` is None here: zero_grad() takes the tensor away, and before the first backward() there is none.",
    fix="Read `.grad` between backward() and zero_grad(), or leave out the parameters whose `.grad` is None.",
)

_TWICE, _IN_PLACE = "Trying to backward through the graph a second time", "modified by an inplace operation"
_NO_GRAD_FN, _NO_INF_CHECKS = "does not require grad and does not have a grad_fn", "No inf checks were recorded"

TABLE: tuple[tuple[str, Code, Callable[[KnownErrors], Located | None]], ...] = (
    (_NO_GRAD_FN, _FROZEN, _all_frozen),
    (_NO_GRAD_FN, _OUTSIDE, _outside_closure),
    (_NO_GRAD_FN, _NO_GRAPH, _cut),
    (_TWICE, _GRAPH_OUTSIDE, _outside_closure),
    (_TWICE, _CARRIED_STATE, _carried),
    (_TWICE, _UNDETACHED, _undetached),
    (_TWICE, _BACKWARD_TWICE, _second_pass),
    (_IN_PLACE, _CARRIED_STATE, _carried),
    (_IN_PLACE, _MODIFIED_BY_STEP, _by_step),
    (_IN_PLACE, _MODIFIED_IN_PLACE, _in_place),
    ("step() has already been called since the last update()", _NO_UPDATE, _second_scaler_step),
    ("unscale_() is being called after step()", _NO_UPDATE, _second_scaler_step),
    ("unscale_() has already been called", _LEFT_OPEN, _left_open),
    ("unscale_() has already been called", _UNSCALE_TWICE, _here),
    ("_scale is None", NEVER_SCALED, _unscaled_loss),
    (_NO_INF_CHECKS, EmptyStep.ZERO_GRAD_BETWEEN_BACKWARD_AND_STEP, _cleared),
    (_NO_INF_CHECKS, _NOT_REACHED, _nowhere),
    ("The specified number of total steps is", _SCHEDULE_OVER, _here),
    ("nested_tensorlist[0].empty()", _NOTHING_TO_CLIP, _clips),
    ("out of memory", _NO_ROOM, _nowhere),
    ("None", _GRAD_IS_NONE, _grad_is_none),
)
"""Words of an error, what they mean, and where; of several rows with the same words the first that finds a place."""


class KnownErrors(Rule):
    """Explains the exception that has ended a loop, where its cause is known."""

    error: BaseException
    frame: FrameType | None
    """The learner's function that it came from."""
    site: Site
    """The learner's line."""
    trace: list[tuple[FrameType, int]]
    """The functions that the error came through and their lines, the innermost last; without the doctor's."""

    def explain(self, error: BaseException) -> None:
        """Add a finding for an exception that PyTorch has raised, or whose cause is known; others speak themselves."""
        if not isinstance(error, Exception):
            return
        message, log = str(error), self.context.log
        self.trace = [one for one in walk_tb(error.__traceback__) if not one[0].f_code.co_filename.startswith(_DOCTOR)]
        own = [one for one in self.trace if is_users(one[0])]
        frame, line = own[-1] if own else (None, 0)
        self.error, self.frame = error, frame
        self.site = (frame.f_code.co_filename, line) if frame is not None else NO_SITE
        log.find_names(frame, params=log.index.all())
        for words, code, find in TABLE:
            if words in message and (place := find(self)) is not None:
                self.report(code, place[0], _first_sentence(error), place[1])
                return
        if own and self._is_pytorchs() and not self.context.has_finding(NanLoss.NAN_LOSS):  # which has led to it
            fixes = (RAISED.with_(fix=fix) for pattern, fix in _FIXES.items() if re.search(pattern, message))
            self.report(next(fixes, RAISED), self.site, f"PyTorch: {first_sentence(message)}")

    def _is_pytorchs(self) -> bool:
        """Return whether PyTorch's code has raised the error, or what it has in C++, called in the learner's line."""
        inner, error, message = self.trace[-1][0], self.error, str(self.error)
        if inner.f_code.co_filename.startswith(TORCH):
            return not isinstance(error, OSError) and not message.startswith("Caught ")  # a worker's error is passed on
        raised = any(isinstance(node, (ast.Raise, ast.Assert)) for node in nodes_at(self.site))
        return is_users(inner) and not raised and (type(error) is RuntimeError or bool(_OF_TENSORS.search(message)))


KnownErrors.codes = frozenset({code.name: code for code in (*(row[1] for row in TABLE), RAISED)}.values())


def is_users(frame: FrameType) -> bool:
    """Return whether a frame runs the learner's own code."""
    return code_owner(frame.f_code.co_filename) is Owner.USER


def first_sentence(words: str) -> str:
    """Return the first sentence of what PyTorch says, which may be long."""
    return words.strip().splitlines()[0].partition(". ")[0][:160].rstrip(".") if words.strip() else ""


def _first_sentence(error: BaseException) -> str:
    speaker = "Python" if isinstance(error, (AttributeError, TypeError)) else "PyTorch"
    return f"{speaker}: {first_sentence(str(error))}"
