"""Scenes: the contents of panels as plain numbers, read from a run at one moment.

Scenes separate the half of gradlab that uses PyTorch from the half that draws: RunScenes makes them from a run, and
``drawing`` turns them into marks. Nothing here imports torch or matplotlib, so a panel can be tested with numbers made
up by hand, and a scene can be stored.
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
    """The names of all panels."""

    LOSS = "loss"
    HELD_OUT = "held-out loss"  # the loss of the held-out examples, which no batch contains; shown only on request
    GRADIENT = "gradient"
    PICTURE = "picture"  # the task's own picture: digits with predictions
    LANDSCAPE = "landscape"
    SCALER = "scaler"
    MEMORY = "memory"


class StatementLabel(StrEnum):
    """Labels of statements that scenes treat specially; any other label is the name of a call, target or keyword."""

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
    switched: str  # the setting before the switch, which the copy keeps, such as "zero_grad on"
    now: float = math.nan  # the newest loss
    ended: str = ""  # why the curve ends, or "" while it continues


@dataclass(frozen=True)
class Curve:
    """The loss over updates. Each point covers a bucket of updates: mean, lowest and highest of the finite losses."""

    updates: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    switches: Sequence[tuple[int, str]] = ()  # (update, label such as "zero_grad off"), oldest first
    broken: int | None = None  # the first update whose loss was inf or NaN; the curve ends there
    now: float = math.nan  # the loss of the newest update, as in the status line; its bucket may not be full yet
    title: str = "loss"
    unswitched: UnswitchedCurve | None = None


@dataclass(frozen=True, eq=False)  # compared by identity, so that its drawing can be cached
class Contours:
    """The loss over the plane of two weights: ``loss[i][j]`` belongs to ``(x[j], y[i])``."""

    x: Sequence[float]
    y: Sequence[float]
    loss: Sequence[Sequence[float]]
    names: tuple[str, str] = ("weight 1", "weight 2")


@dataclass(frozen=True)
class BatchArrow:
    """The contribution of one batch, or of several older batches together, to ``.grad``, in gradient units."""

    batches: Span | None  # the first and the last batch; None for a part of ``.grad`` that is not from a backward pass
    x: float
    y: float
    share: float  # its projection onto the sum, as a fraction of the sum's length; negative if it points the other way
    applied: tuple[int, int] = (0, 0)  # fewest and most optimizer steps that have applied one of its batches
    names: Sequence[str] = ()  # labels, the longest first; empty to label it with the numbers of its batches
    length: float = math.nan  # its norm over all parameters; NaN if unknown


@dataclass(frozen=True)
class Arrows:
    """The contents of ``.grad``: the measured contributions as arrows, drawn head to tail.

    With two weights, the first arrow begins at the position of the weights on ``contours``. With any other model, the
    arrows are laid flat: each has its true extent ``x`` along the sum, and nearly its true length; they zigzag.
    """

    arrows: Sequence[BatchArrow]  # the oldest first
    total: tuple[float, float]  # the sum, ``.grad`` itself
    holds: Sequence[Span] = ()  # batches in ``.grad`` of any parameter
    contours: Contours | None = None
    measured: bool = True  # False if the contribution of the newest batch was not recorded
    elements: int = 0  # elements of ``.grad`` if the arrows are laid flat, else 0
    reach: float = 0.0  # reach of the picture in gradient units (``Camera``); 0 to fit the arrows
    path: Sequence[tuple[float, float]] = ()  # the path of two weights, the oldest point first
    move: tuple[float, float] | None = None  # change of two weights by the next step, if that is plain SGD
    one_batch: float = 0.0  # the usual length of one batch, drawn as a yardstick; 0 if there is none


@dataclass(frozen=True)
class Landscape:
    """The loss surface of a two-weight model, and the path of the weights, thinned and with the oldest point first."""

    contours: Contours
    path: Sequence[tuple[float, float]]
    arrows: Arrows | None = None  # the contents of ``.grad``, drawn at the end of the path


@dataclass(frozen=True)
class ScalerHistory:
    """The loss scale over updates, the updates whose step was skipped, and underflow as shares from 0 to 1."""

    updates: Sequence[float]
    scale: Sequence[float]
    skipped: Sequence[int]
    underflow: Sequence[float]  # share of gradient elements that fp16 would round to zero if the loss were not scaled


@dataclass(frozen=True)
class Samples:
    """Held-out digits with the model's answers. ``images`` is n x 8 x 8, with values from 0 to 1."""

    images: Sequence[Sequence[Sequence[float]]]
    predicted: Sequence[int]
    actual: Sequence[int]
    accuracy: float  # share of all held-out digits for which the answer is right


@dataclass(frozen=True)
class Memory:
    """Bytes by category over the last watched updates, statement by statement.

    A statement has one or more points: the bytes that were alive while a module ran. If the bytes at the peak and at
    the end of that time are known, it has two points, first the peak and then the end. Each storage is counted once.
    """

    statements: Sequence[str]  # labels of the statements of all shown updates, in the order in which they ran
    starts: Sequence[int] = ()  # the index of each statement's first point
    categories: dict[str, Sequence[int]] = field(default_factory=dict)  # category, such as "weights" -> bytes at points
    updates: Sequence[tuple[int, int]] = ()  # (index of first statement, number of update), oldest update first
    modules: Sequence[str] = ()  # the dotted name of the running module at each point, or "" outside of all modules
    capacity: tuple[str, int] | None = None  # name and usable bytes of the card with which the peak is compared
    allocated: int | None = None  # CUDA only: bytes that PyTorch's allocator has given to tensors
    reserved: int | None = None  # CUDA only: bytes that PyTorch's allocator has reserved
    note: str = ""  # a remark for the learner: "1 update in 12 is watched"


@dataclass(frozen=True)
class Fit:
    """Memory peaks compared with the capacities of graphics cards."""

    bars: Sequence[tuple[str, dict[str, int]]]  # (label, bytes at the peak by category) of each bar, left to right
    cards: Sequence[tuple[str, int]]  # (name, usable bytes) of each card that is drawn as a line
    title: str = ""
    verdict: str = ""  # a phrase on whether the last bar fits a card


Scene = Curve | Arrows | Landscape | ScalerHistory | Samples | Memory | Fit
