"""Scenes: the contents of panels as plain numbers, read from a run at one moment.

Scenes separate the half of gradlab that uses PyTorch from the half that draws: RunScenes creates scenes from a run, and
``drawing`` turns scenes into marks. This module imports neither torch nor matplotlib, so a panel can be tested with
invented numbers, and a scene can be stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..gradients import Span


class PanelName(StrEnum):
    """The names of the panels of a Lab."""

    LOSS = "loss"
    HELD_OUT = "held-out loss"  # the loss on held-out examples, which no batch contains; shown only if requested
    GRADIENT = "gradient"
    PICTURE = "picture"  # held-out images with the model's predictions
    LANDSCAPE = "landscape"
    SCALER = "scaler"
    MEMORY = "memory"


class StatementLabel(StrEnum):
    """The labels of statements that scenes treat specially. Other labels are names of calls, targets or keywords."""

    ZERO_GRAD = "zero_grad"
    OUTPUT = "output"
    AUTOCAST = "autocast"
    BACKWARD = "backward"
    UNSCALE = "unscale_"
    CLIP = "clip_grad_norm_"
    STEP = "step"
    UPDATE = "update"


BEATS = frozenset({StatementLabel.BACKWARD, StatementLabel.STEP, StatementLabel.ZERO_GRAD})
"""The calls that change the contents of ``.grad``, or the number of times that the contents were applied."""


@dataclass(frozen=True)
class UnswitchedCurve:
    """The loss as it would be without the newest change of a switch, measured in a copy of the run."""

    updates: Sequence[float]
    mean: Sequence[float]
    switched: str  # the setting that the copy has kept, such as "zero_grad on"
    now: float = math.nan  # the newest loss of the copy
    ended: str = ""  # why the curve ends, or "" while it continues


@dataclass(frozen=True)
class Curve:
    """The loss over updates: for each bucket of updates, the mean, the lowest and the highest of the finite losses."""

    updates: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    switches: Sequence[tuple[int, str]] = ()  # pairs of an update and a label such as "zero_grad off", oldest first
    broken: int | None = None  # the first update with a loss of inf or NaN, where the curve ends, or None
    now: float = math.nan  # the loss of the newest update, which may not yet be in ``mean``
    title: str = "loss"
    unswitched: UnswitchedCurve | None = None


@dataclass(frozen=True, eq=False)  # contours are compared by identity, so that drawings of them can be cached
class Contours:
    """The loss over the plane of two weights, where ``loss[i][j]`` is the loss at the weights ``(x[j], y[i])``."""

    x: Sequence[float]
    y: Sequence[float]
    loss: Sequence[Sequence[float]]
    names: tuple[str, str] = ("weight 1", "weight 2")


@dataclass(frozen=True)
class BatchArrow:
    """The contribution to ``.grad`` of one batch, or of several older batches together, in units of the gradient."""

    batches: Span | None  # first and last batch, or None for a part of ``.grad`` that is not from a backward pass
    x: float
    y: float
    share: float  # projection of the contribution onto the sum, as a fraction of the sum's length; may be negative
    applied: tuple[int, int] = (0, 0)  # least and greatest number of steps that have applied one of the batches
    names: Sequence[str] = ()  # labels of the arrow, the longest first; if empty, the numbers of the batches
    length: float = math.nan  # norm of the contribution over all parameters, or NaN if unknown


@dataclass(frozen=True)
class Arrows:
    """The contents of ``.grad``: the measured contributions as arrows, drawn head to tail.

    With two weights, the first arrow begins at the position of the weights on ``contours``. With any other model, the
    arrows are laid flat: they zigzag along the sum, each with its true extent ``x`` and nearly its true length.
    """

    arrows: Sequence[BatchArrow]  # the arrow of the oldest contribution first
    total: tuple[float, float]  # the sum of the contributions, that is ``.grad``; (norm, 0) if laid flat
    holds: Sequence[Span] = ()  # the batches that the ``.grad`` of any parameter contains
    contours: Contours | None = None
    measured: bool = True  # whether the contribution of the newest batch was recorded
    elements: int = 0  # number of elements of ``.grad`` if the arrows are laid flat, else 0
    reach: float = 0.0  # extent that the picture shows, in gradient units, as in ``Camera``; 0 to fit the arrows
    path: Sequence[tuple[float, float]] = ()  # the path of two weights, the oldest point first
    move: tuple[float, float] | None = None  # change of two weights by the next step of plain SGD, if known
    one_batch: float = 0.0  # usual length of the arrow of one batch, drawn as a yardstick, or 0 for no yardstick


@dataclass(frozen=True)
class Landscape:
    """The loss surface of a two-weight model, and the path of the weights as some of its points, the oldest first."""

    contours: Contours
    path: Sequence[tuple[float, float]]
    arrows: Arrows | None = None  # the contents of ``.grad``, drawn from the end of the path, or None to draw none


@dataclass(frozen=True)
class ScalerHistory:
    """The loss scale, the updates whose step was skipped, and the share of gradients that would underflow unscaled."""

    updates: Sequence[float]
    scale: Sequence[float]
    skipped: Sequence[int]
    underflow: Sequence[float]  # share of gradient elements that fp16 would round to zero if the loss were not scaled


@dataclass(frozen=True)
class Samples:
    """Held-out images with the model's answers; ``images`` is n x height x width, from 0 (blank) to 1 (full ink)."""

    images: Sequence[Sequence[Sequence[float]]]
    predicted: Sequence[int]
    actual: Sequence[int]
    accuracy: float  # share of all held-out images for which the answer is right


@dataclass(frozen=True)
class Memory:
    """Bytes by category in the updates that were watched last, statement by statement.

    A statement has a point for each interval in which one module ran, or two points, the peak and the end, if both are
    known for the interval. A point is the bytes that were alive, with each storage counted once.
    """

    statements: Sequence[str]  # labels of the statements of all shown updates, in the order in which they ran
    starts: Sequence[int] = ()  # the index of each statement's first point
    categories: dict[str, Sequence[int]] = field(default_factory=dict)  # name of a category -> bytes at each point
    updates: Sequence[tuple[int, int]] = ()  # (index of its first statement, number) of each update, oldest first
    modules: Sequence[str] = ()  # the dotted name of the module that ran at each point, or "" outside any module
    capacity: tuple[str, int] | None = None  # name and total bytes of the GPU with which the peak is compared
    allocated: int | None = None  # CUDA only: bytes that PyTorch's allocator has given to tensors
    reserved: int | None = None  # CUDA only: bytes that PyTorch's allocator has reserved
    note: str = ""  # a remark for the learner, such as "1 update in 12 is watched"


@dataclass(frozen=True)
class Fit:
    """Memory peaks compared with the capacities of graphics cards."""

    bars: Sequence[tuple[str, dict[str, int]]]  # (label, bytes at the peak by category) of each bar, left to right
    cards: Sequence[tuple[str, int]]  # (name, usable bytes) of each card that is drawn as a line
    title: str = ""
    verdict: str = ""  # a phrase that says whether the last bar fits a card


Scene = Curve | Arrows | Landscape | ScalerHistory | Samples | Memory | Fit
