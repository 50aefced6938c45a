"""The events of a loop in their order; recorded while it runs, judged later.

A set of parameters (``params``) is a whole number with a bit for each parameter, so that sets of thousands are compared
and combined at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from .finding import NO_SITE as NO_SITE
from .finding import Cause, Edit
from .finding import Site as Site

MANUAL_UPDATE = 1_000_000
"""Stands for an optimizer where the learner's own lines move the weights."""


def bit_positions(params: int) -> list[int]:
    """Return the numbers of the parameters in a set, lowest first."""
    return [number for number, bit in enumerate(reversed(f"{params:b}")) if bit == "1"]


def union_bits(sets: Iterable[int]) -> int:
    """Return the parameters that are in one of some sets."""
    return reduce(or_, sets, 0)


@dataclass(slots=True, eq=False)
class Event:
    """Something that has happened in a loop."""


@dataclass(frozen=True, slots=True)
class LossFlaw:
    """Something suspicious in the graph or in the expression of a loss."""

    kind: str
    """The kind, such as "softmax"; the rules have its sentences."""
    proof: str = ""
    """The evidence, as text; "" if a closer look shows that it is intended."""
    loss: tuple[Site, ...] = ()
    """The lines that call the loss function, caller by caller, the innermost last; empty if they were not recorded."""
    source: tuple[Site, ...] = ()
    """The lines that made what the loss is given."""
    edit: Edit | Cause | None = None
    """The place to edit, where only the variables of the moment tell it."""
    fields: dict[str, Any] = field(default_factory=dict, compare=False)
    """The values of the fields in the sentence of its code."""


@dataclass(frozen=True, slots=True)
class LossTerm:
    """A term of a loss that does not reach all that it was computed from, or is made of nothing that learns."""

    index: int
    """The number of the term in the sum."""
    text: str
    """Its text in the learner's code."""
    reach: int
    """Parameters to which its graph goes back."""
    made_of: int
    """Parameters that it was computed from."""
    by_loss_function: bool
    site: Site
    cuts: tuple[Any, ...] = ()
    """The calls that cut it off, each an Op."""
    sources: tuple[str, ...] = ()
    """The learner's names of the outputs that it is computed from."""
    alone: bool = False
    """True if it is all of the loss."""


@dataclass(frozen=True, slots=True)
class GraphHolder:
    """A variable that holds graphs of earlier batches, and the learner's line that puts them there."""

    name: str
    site: Site
    batches: int
    """Of how many earlier batches, at least."""
    carried: bool = False
    """True if it is a state that goes into the model again; otherwise losses or outputs are added to it."""
    hook: bool = False
    """True if a forward hook puts them there."""
    tensors: frozenset[str] = frozenset()
    """Names of tensors with a graph in the function of that line; empty if that function was not running."""


@dataclass(init=False, eq=False)
class Backward(Event):
    """A backward pass that adds to ``.grad``."""

    number: int
    site: Site
    call_path: int = 0
    """A number for the line and those that called it."""
    present: int = 0
    """Parameters that had a gradient when it began ..."""
    norms: Any = None
    """... and, now and then, the norms of those, to see whether they were zeros."""
    retain: bool = False
    create: bool = False
    scales: tuple[float, ...] = ()
    """The factor of the mean in its loss, 1 / 4 for a division by 4."""
    mass: float = 0.0
    """By how much the means in its loss are weighed, all together; 0 if it is made of none."""
    tokens: Any = None
    """The number of targets that a cross entropy is a mean over, each with its weight; those ignored have none."""
    scaled: bool = False
    """True if the loss was multiplied by a GradScaler."""
    nodes: int = 0
    """Nodes of the graph, counted now and then for passes that retain it."""
    alive: int = 0
    """The number of the newest graphs' roots that are still alive, without this one."""
    holder: GraphHolder | None = None
    """The variable that keeps them, if one was found."""
    loss: Any = None
    """The number that it begins with, None if it is none; on a GPU it comes with the next batch of numbers."""
    flaws: tuple[LossFlaw, ...] = ()
    """Flaws of the loss, which is examined now and then."""
    terms: tuple[LossTerm, ...] = ()
    """Terms of the loss that may move no weight, looked at now and then."""
    cuts: Sequence[Any] = ()
    """The calls, each an Op, that cut parameters off from the loss; looked for now and then."""
    changes: Sequence[Any] = ()
    """Only known when it fails: the calls that changed a tensor in place, with what made the tensor."""
    ops: Sequence[Any] = ()
    """Only known when it fails: the calls, each an Op, that its loss was made by, as far as they were followed."""
    looked: bool = False
    """True if its loss was looked at in detail."""
    closure_of: int = -1
    """The optimizer whose step called it as a closure, -1 without."""
    step_index: int = 0
    """The step of its optimizer that it belongs to; filled in by GradState."""
    moved: bool = False
    """True if it is a closure's, and the step that calls it has moved weights since the closure's last pass."""
    has_grads: bool = False
    """True if it was called with ``gradient=`` or ``inputs=``."""
    previous: int = -1
    """Autograd's number for the first node made after the last pass of the same call path began; -1 if none did."""
    carried: bool = False
    """Only known when it fails: True if its graph goes back into that of its call path's last pass, and an update."""
    nonzero: int = 0
    """Of ``present``, those that were seen not to be zeros; this and what follows is filled in by GradState."""
    added: int = 0
    """Parameters that it added to."""
    zeros: int = 0
    """Those whose gradient was all zeros when it ended."""
    stepped_params: int = 0
    """Parameters on which a step used it."""
    first_step_pass: int = 0
    """Number of the newest backward pass when a step used it for the first time."""
    cleared_params: int = 0
    """Parameters on which it was cleared before any step used it."""
    skipped_by_scaler: bool = False
    """A step that a scaler skipped would have used it."""

    def __init__(self, number: int, site: Site, call_path: int = 0, present: int = 0) -> None:  # the rest costs time
        self.number, self.site, self.call_path, self.present = number, site, call_path, present


@dataclass(slots=True, eq=False)
class Added(Event):
    """The parameters that a backward pass has added to so far."""

    backward: Backward
    params: int
    norms: Any = None
    """Norms of those gradients when it had ended, taken now and then: zeros found later may be its own."""
    groups: Any = ()
    """The ParamGroupStates of these parameters as they were before it; filled in by GradState."""


@dataclass(slots=True, eq=False)
class Clear(Event):
    """``zero_grad()`` of an optimizer or a module, or ``.grad`` found empty."""

    site: Site
    params: int
    lost: list[Backward] = field(default_factory=list)
    """Backward passes that no step had used; filled in by GradState."""


@dataclass(slots=True, eq=False)
class ParamSlotReused(Event):
    """Parameters whose parameters are gone, and that belong to new ones from now on."""

    params: int


@dataclass(slots=True, eq=False)
class GradEdited(Event):
    """``.grad`` written to or exchanged by something that is none of PyTorch's own calls."""

    params: int
    norms: Any
    """Norms of those gradients, on their device, in the order of the parameters: zeros are a clearing."""


@dataclass(slots=True, eq=False)
class Step(Event):
    """``optimizer.step()``."""

    site: Site
    optimizer: int
    params: int
    """Parameters of the optimizer."""
    present: int
    """Those that have a gradient."""
    norms: Any = None
    """Norms of those that no backward pass has added to since they were cleared: they should be zeros."""
    frozen: int = 0
    """Those whose parameter requires none; 0 where others have a gradient."""
    frozen_moved: int = 0
    """Those that it has changed although they require no gradient; a few are looked at, now and then."""
    moved: bool = False
    """True if anything but this optimizer has written to its weights since its last step."""
    versions: int = -1
    """The version of its weights when its closure's newest pass began."""
    closure: bool = False
    """True if it ran a backward pass, or cleared or filled gradients, in a closure."""
    scaler: bool = False
    """Called by a GradScaler."""
    backward: bool = False
    """Called while a backward pass runs."""
    resumes: int = 0
    """The number of earlier optimizers of the same line with averages or momentum, if this first step goes on
    where the last one stopped."""
    lines: tuple[Site, ...] = ()
    """Then, the learner's lines that have called it, the innermost first."""


@dataclass(slots=True, eq=False)
class ScalerStep(Event):
    """``scaler.step(optimizer)``, after it has run."""

    site: Site
    optimizer: int
    params: int
    taken: bool
    scaler: int
    """The number of the scaler."""
    refused: bool = False
    """True if it skipped gradients that no step had used; filled in by GradState."""


@dataclass(slots=True, eq=False)
class ScalerUpdate(Event):
    """``scaler.update()``."""

    scaler: int


@dataclass(slots=True, eq=False)
class Unscale(Event):
    """``scaler.unscale_(optimizer)``."""

    params: int


@dataclass(slots=True, eq=False)
class Clip(Event):
    """``clip_grad_norm_`` or ``clip_grad_value_``."""

    site: Site
    params: int
    measures: bool
    """True if its bound is infinite: then it only measures."""
    empty: bool = False
    """True if it was given no parameter at all."""
    groups: Any = ()
    """The ParamGroupStates of these parameters; filled in by GradState."""


@dataclass(slots=True, eq=False)
class SchedulePlan:
    """The optimizer and the settings of a scheduler."""

    kind: str
    length: int = 0
    """Steps that it plans for, or for which it waits until it changes anything; 0 if it is not known."""
    halves: bool = False
    """True if it goes up again after ``length`` steps, as a cosine does."""
    nested: bool = False
    """True if it steps in a loop in a loop of the learner's, both run in its life."""
    epochs: int = 0
    """The number of iterations of the outer one; 0 if it is unknown."""
    mode: str = ""
    """"min" or "max" for a ReduceLROnPlateau."""
    created_at: Site = NO_SITE
    """The line that made it."""


@dataclass(slots=True, eq=False)
class Schedule(Event):
    """``scheduler.step()``."""

    site: Site
    optimizer: int
    plan: SchedulePlan
    before: float
    """The greatest learning rate of the optimizer before the step, NaN where it lies on a GPU ..."""
    after: float
    """... and after it."""
    other: int = -1
    """The optimizer that steps instead, with the same parameters and a learning rate that nothing moves; -1 without."""
    metric: float = math.nan
    """The metric given to a ReduceLROnPlateau."""


@dataclass(slots=True, eq=False)
class Mode(Event):
    """``model.train()`` or ``model.eval()``."""

    site: Site
    module: int
    training: bool


@dataclass(slots=True, eq=False)
class Forward(Event):
    """A call of a module by the learner's code."""

    site: Site
    module: int
    training: bool
    grad: bool
    train_kind: str
    """The kind of a module in it that depends on the mode and is in training, such as "Dropout"; "" if none."""
    eval_kind: str
    """The kind of one that is in evaluation mode; "" if none."""
    caller: str
    """Name of the learner's function that calls it."""
    params: int
    first: int = 0
    """A number for the values of its first argument, if it distinguishes evaluation from sampling; else 0."""
    again: bool = False
    """Called from PyTorch's own code, as by ``update_bn``."""
    names: tuple[str, ...] = ()
    """The name of the module in the learner's function, at the first call in this line."""
    frozen_norms: int = 0
    """Frozen parameters of its BatchNorm layers in training mode, where nothing else is frozen, or where eval() was
    called on a part with the layer; 0 if nothing in it learns."""
    dropouts: frozenset[Site] = frozenset()
    """The first line of each forward() that mentions a dropout and belongs to a module in evaluation mode."""
    fed: bool = False
    """True if an argument requires a gradient, as what another module has made does."""


@dataclass(slots=True, eq=False)
class OptimizerMade(Event):
    """An optimizer, when it was made or first seen."""

    site: Site
    optimizer: int
    kind: str
    params: int = 0
    is_custom_class: bool = False
    """True if it is a class of the learner's own, which may do anything in its step."""
    lines: tuple[Site, ...] = ()
    """The learner's lines that have made it, the innermost first; empty if it is older than the watch."""
    settings: str = ""
    """Its settings, as "lr=0.1, momentum=0.9"."""
