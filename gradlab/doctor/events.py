"""Events of a training loop. Listeners record them while the loop runs, and rules judge them later.

A set of parameters (``params``) is an int with one bit per parameter, so that sets of thousands of parameters are
compared and combined in one operation.
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
"""The optimizer index of updates that the learner's own code makes without an optimizer."""


def bit_positions(params: int) -> list[int]:
    """Return the indices of the parameters in the set ``params``, lowest first."""
    return [number for number, bit in enumerate(reversed(f"{params:b}")) if bit == "1"]


def union_bits(sets: Iterable[int]) -> int:
    """Return the union of ``sets`` of parameters."""
    return reduce(or_, sets, 0)


@dataclass(slots=True, eq=False)
class Event:
    """The base class of all events. An event records one thing that happened in a training loop."""


@dataclass(frozen=True, slots=True)
class LossFlaw:
    """A problem found in the graph of a loss or in the calls that computed it."""

    kind: str
    """The kind, such as "softmax"; rules/losses.py has the message for each kind."""
    proof: str = ""
    """The evidence; "" if a closer look shows that the code is intentional, or if the origin of a NaN is unknown."""
    loss: tuple[Site, ...] = ()
    """The learner's lines that led to the loss function, the innermost last; empty if they were not recorded."""
    source: tuple[Site, ...] = ()
    """The learner's lines that led to the activation whose result the loss receives; empty if none were recorded."""
    edit: Edit | Cause | None = None
    """The edit or location, for kinds that need a search while the loop runs; None for others, or if none is found."""
    fields: dict[str, Any] = field(default_factory=dict, compare=False)
    """Values of the {fields} in the message and the fix of the Code that reports the flaw."""


@dataclass(frozen=True, slots=True)
class LossTerm:
    """A term of a loss that possibly trains no parameter: it is detached, or depends only on untrained parameters."""

    index: int
    """The position of the term in the sum, from 0."""
    text: str
    """The learner's variable or expression for the term; "" if it is not known."""
    reach: int
    """Parameters in the graph of the term."""
    made_of: int
    """Parameters that the term was computed from, whether or not they are in its graph."""
    by_loss_function: bool
    site: Site
    cuts: tuple[Any, ...] = ()
    """The calls, each an Op, that cut the term off from parameters."""
    sources: tuple[str, ...] = ()
    """The learner's variables for the model outputs that the term was computed from, at most two."""


@dataclass(frozen=True, slots=True)
class GraphHolder:
    """A variable that holds graphs of earlier batches, and the learner's line that stores the graphs in it."""

    name: str
    site: Site
    batches: int
    """The least number of earlier batches whose graphs the variable holds or, for a hook, the number of graphs."""
    carried: bool = False
    """True if the variable is a state that is passed to the model again; False if losses or outputs are added to it."""
    hook: bool = False
    """True if a forward hook stores the graphs."""
    tensors: frozenset[str] = frozenset()
    """Variables with a graph in the function around ``site`` while that function runs; empty for states and hooks."""


@dataclass(init=False, eq=False)
class Backward(Event):
    """A backward pass that adds to ``.grad``."""

    number: int
    site: Site
    call_path: int = 0
    """A hash of the calls that led to this pass, from ``site_and_path``."""
    present: int = 0
    """Parameters that had a gradient when the pass began; GradState removes those whose norms are 0."""
    norms: Any = None
    """Norms of the gradients of ``present``, to detect zeros; None if not measured, or already used by GradState."""
    retain: bool = False
    create: bool = False
    scales: tuple[float, ...] = ()
    """The factors of the first mean in the loss, such as (0.25,) if the loss is divided by 4; () if there are none."""
    mass: float = 0.0
    """The sum of the absolute weights of the means in the loss; 0 if there are none, or if the graph was not read."""
    tokens: Any = None
    """Total weight of the targets, without ignored ones, if the first mean is a cross-entropy; None otherwise."""
    scaled: bool = False
    """True if the loss was multiplied by a GradScaler."""
    nodes: int = 0
    """Number of nodes in the graph, counted in some of the passes that retain the graph; 0 in the others."""
    alive: int = 0
    """Number of live losses, or of live model outputs if greater, from before the last two passes; 0 if not counted."""
    holder: GraphHolder | None = None
    """The variable that keeps graphs of earlier batches alive; None if it was not searched for or not found."""
    loss: Any = None
    """The value of the loss (on a GPU, a tensor until ``fetch_norms``); None if the loss is not a single float."""
    flaws: tuple[LossFlaw, ...] = ()
    """Flaws of the loss, which is examined in some passes only."""
    terms: tuple[LossTerm, ...] = ()
    """Terms of the loss that possibly train no parameter; searched for in traced passes only."""
    cuts: Sequence[Any] = ()
    """The calls, each an Op, that cut parameters off from the loss; searched for in traced passes only."""
    changes: Sequence[Any] = ()
    """Set only if the pass fails: pairs of an Op that changed a tensor in place and the Op that had made the tensor."""
    ops: Sequence[Any] = ()
    """Set only if the pass fails: the traced calls, each an Op, that led to the loss."""
    looked: bool = False
    """True if the loss was examined for flaws."""
    closure_of: int = -1
    """Index of the optimizer whose step ran the pass in a closure; -1 if there is none."""
    step_index: int = 0
    """Index of the first step that used the pass, or whose closure ran it; 0 if none has; filled in by GradState."""
    moved: bool = False
    """True if the pass ran in a closure whose step has moved weights since the closure's previous pass."""
    has_grads: bool = False
    """True if backward() was called with ``gradient=`` or ``inputs=``."""
    previous: int = -1
    """Autograd's sequence number when the previous pass of the same call path began; -1 if there was none."""
    carried: bool = False
    """Set only if the pass fails: True if its graph has nodes from before ``previous``, and an update came after it."""
    nonzero: int = 0
    """Parameters with a gradient measured as nonzero when the pass began; GradState sets this and the fields below."""
    added: int = 0
    """Parameters whose gradients the pass added to."""
    zeros: int = 0
    """Parameters among ``added`` whose gradient was measured as all zeros when the pass ended."""
    stepped_params: int = 0
    """Parameters that a step has updated with gradients of this pass."""
    first_step_pass: int = 0
    """Number of the newest backward pass when a step first used this one; 0 if no step has used it."""
    cleared_params: int = 0
    """Parameters whose gradient was cleared before any step used this pass."""
    skipped_by_scaler: bool = False
    """True if a step that a GradScaler skipped would have used the pass."""

    def __init__(self, number: int, site: Site, call_path: int = 0, present: int = 0) -> None:
        # All other fields keep the defaults of the class, since setting them for every pass costs time.
        self.number, self.site, self.call_path, self.present = number, site, call_path, present


@dataclass(slots=True, eq=False)
class Added(Event):
    """The parameters whose gradients a pass has changed, either when the pass ends or before a step during the pass."""

    backward: Backward
    params: int
    norms: Any = None
    """Norms of the gradients of ``params`` after the pass, to detect zeros; None if they were not measured."""
    groups: Any = ()
    """The ParamGroupStates of ``params`` before the pass; filled in by GradState."""


@dataclass(slots=True, eq=False)
class Clear(Event):
    """A call to ``zero_grad()`` on an optimizer or module, or the discovery that gradients are now None or zeros."""

    site: Site
    params: int
    lost: list[Backward] = field(default_factory=list)
    """Backward passes in the cleared gradients that no step had used; filled in by GradState."""


@dataclass(slots=True, eq=False)
class ParamSlotReused(Event):
    """The reuse of bits in sets of parameters: they now denote new parameters, as the former ones no longer exist."""

    params: int


@dataclass(slots=True, eq=False)
class GradEdited(Event):
    """A replacement of ``.grad``, or a write to it, by code other than the watched calls to PyTorch."""

    params: int
    norms: Any
    """Norms of the gradients of ``params``, to detect that they were cleared to zeros; None if unknown."""


@dataclass(slots=True, eq=False)
class Step(Event):
    """A call to ``optimizer.step()`` or, if ``optimizer`` is MANUAL_UPDATE, an update by the learner's own code."""

    site: Site
    optimizer: int
    params: int
    present: int
    """Parameters of the optimizer that have a gradient."""
    norms: Any = None
    """Norms of the gradients of ``present``; None if unknown, or if a pass has added to one of them since a clear."""
    frozen: int = 0
    """Parameters of the optimizer that do not require a gradient; 0 if any of its parameters has a gradient."""
    frozen_moved: int = 0
    """Parameters that the step has changed although they require no gradient; only a few are checked, in some steps."""
    moved: bool = False
    """True if anything other than this optimizer has written to its weights since its last step."""
    versions: int = -1
    """The sum of the weights' version counters when the newest pass in the step's closure began; -1 if none did."""
    closure: bool = False
    """True if a closure of this step ran a backward pass, or cleared or edited gradients."""
    scaler: bool = False
    """True if a GradScaler called the step."""
    backward: bool = False
    """True if the step was called during a backward pass."""
    resumes: int = 0
    """At a first step, ``WatchedOptimizer.predecessors`` if the last predecessor had momentum or averages; else 0."""
    lines: tuple[Site, ...] = ()
    """If ``resumes`` is not 0, the learner's lines that led to this step, the innermost first."""


@dataclass(slots=True, eq=False)
class ScalerStep(Event):
    """A call to ``scaler.step(optimizer)``. The event is emitted when the call has returned."""

    site: Site
    optimizer: int
    params: int
    taken: bool
    scaler: int
    refused: bool = False
    """True if the scaler skipped gradients that no step had used; filled in by GradState."""


@dataclass(slots=True, eq=False)
class ScalerUpdate(Event):
    """A call to ``scaler.update()``."""

    scaler: int


@dataclass(slots=True, eq=False)
class Unscale(Event):
    """A call to ``scaler.unscale_(optimizer)``."""

    params: int


@dataclass(slots=True, eq=False)
class Clip(Event):
    """A call to ``clip_grad_norm_`` or ``clip_grad_value_``."""

    site: Site
    params: int
    measures: bool
    """True if ``max_norm`` is infinite, so that the call only measures the norm."""
    empty: bool = False
    """True if the call had no parameters."""
    groups: Any = ()
    """The ParamGroupStates of ``params``; filled in by GradState."""


@dataclass(slots=True, eq=False)
class SchedulePlan:
    """The settings of a learning-rate scheduler, and the loops that it steps in."""

    kind: str
    length: int = 0
    """Number of steps in the schedule, or between two changes of the rate (``step_size``); 0 if unknown."""
    halves: bool = False
    """True if the rate rises again after ``length`` steps, as with CosineAnnealingLR."""
    nested: bool = False
    """True if the scheduler steps inside two nested loops that do not contain its creation."""
    epochs: int = 0
    """Number of iterations of the outer of these loops, or of the only one; 0 if unknown."""
    mode: str = ""
    """The mode of a ReduceLROnPlateau, "min" or "max"; "" for other schedulers."""
    created_at: Site = NO_SITE
    """The learner's line that created the scheduler; NO_SITE if it is unknown."""


@dataclass(slots=True, eq=False)
class Schedule(Event):
    """A call to ``scheduler.step()``."""

    site: Site
    optimizer: int
    plan: SchedulePlan
    before: float
    after: float
    """The optimizer's largest learning rates before and after the step; NaN if they are on a GPU."""
    other: int = -1
    """Index of another optimizer that steps these parameters although ``optimizer`` has not stepped, or -1."""
    metric: float = math.nan
    """The metric passed to a ReduceLROnPlateau; NaN for other schedulers."""


@dataclass(slots=True, eq=False)
class Mode(Event):
    """A call to ``model.train()`` or ``model.eval()``."""

    site: Site
    module: int
    training: bool


@dataclass(slots=True, eq=False)
class Forward(Event):
    """A call to a module by the learner's code, or by code of PyTorch such as ``update_bn``."""

    site: Site
    module: int
    training: bool
    grad: bool
    train_kind: str
    eval_kind: str
    """Class names of mode-dependent parts, such as "Dropout", in training and in evaluation mode, or ""."""
    caller: str
    """The name of the learner's function that calls the module; "" if there is none."""
    params: int
    first: int = 0
    """An int that identifies the first argument, by its values if it is a small CPU tensor; 0 if no rule needs it."""
    again: bool = False
    """True if PyTorch's own code calls the module, as ``update_bn`` does."""
    names: tuple[str, ...] = ()
    """The module's names in the learner's function; empty except at the first call from this line."""
    frozen_norms: int = 0
    """Parameters of the frozen BatchNorm layers in training mode that are in a part on which eval() was called, or of
    all of them if nothing else in the module is frozen; 0 if nothing in the module learns."""
    dropouts: frozenset[Site] = frozenset()
    """The first line of each forward() that mentions a dropout and belongs to a module in evaluation mode."""
    fed: bool = False
    """True if an argument requires a gradient, such as another module's output; only the first calls are checked."""


@dataclass(slots=True, eq=False)
class OptimizerMade(Event):
    """The creation of an optimizer, or its first use if it was created before ``watch`` began."""

    site: Site
    optimizer: int
    kind: str
    params: int = 0
    is_custom_class: bool = False
    """True if the class is not from torch.optim, so that its step may do anything."""
    lines: tuple[Site, ...] = ()
    """The learner's lines that led to the creation, the innermost first; empty if it is older than the watch."""
    settings: str = ""
    """The settings of the optimizer, such as "lr=0.1, momentum=0.9"."""
