"""Scenes, the contents of panels: plain numbers, read from a run at one moment.

A scene is the border between the half of gradlab that knows PyTorch and the half that draws. RunScenes fills scenes
from a run; `drawing` turns scenes into marks. Nothing here imports torch or matplotlib, so a panel can be tested with
numbers made up by hand, and a scene can be stored.
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
    HELD_OUT = "held-out loss"
    """The loss of examples that no batch contains; shown only on request."""
    GRADIENT = "gradient"
    PICTURE = "picture"
    """The task's own picture: digits with predictions."""
    LANDSCAPE = "landscape"
    SCALER = "scaler"
    MEMORY = "memory"


class StatementLabel(StrEnum):
    """Labels of statements with a meaning for pictures and texts; others are named by their target or keyword."""

    ZERO_GRAD = "zero_grad"
    OUTPUT = "output"
    AUTOCAST = "autocast"
    BACKWARD = "backward"
    UNSCALE = "unscale_"
    CLIP = "clip_grad_norm_"
    STEP = "step"
    UPDATE = "update"


BEATS = frozenset({StatementLabel.BACKWARD, StatementLabel.STEP, StatementLabel.ZERO_GRAD})
"""The calls that change what ``.grad`` holds, or whether it was applied."""


@dataclass(frozen=True)
class UnswitchedCurve:
    """The loss without the newest switch, measured in a copy of the run."""

    updates: Sequence[float]
    mean: Sequence[float]
    switched: str  # the setting that stays: "zero_grad on"
    now: float = math.nan  # the newest loss
    ended: str = ""  # why the curve ends, "" while it goes on


@dataclass(frozen=True)
class Curve:
    """The loss over updates. Each point covers a bucket of updates: mean, lowest and highest of the finite losses."""

    updates: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    switches: Sequence[tuple[int, str]] = ()  # (update, what was switched), oldest first: "zero_grad off"
    broken: int | None = None  # the first update whose loss was inf or NaN; the curve ends there
    now: float = math.nan
    """The loss of the newest update, as in the status line; its bucket may not be full yet."""
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
    """The contribution of one batch, or of several older ones together, to ``.grad``, in gradient units."""

    batches: Span | None
    """The first and the last of them; None for what anything but a backward wrote into ``.grad``."""
    x: float
    y: float
    share: float  # its projection on the sum, as a part of the sum: negative where it points the other way
    applied: tuple[int, int] = (0, 0)  # how many optimizer steps have applied it; of several, the fewest and the most
    names: Sequence[str] = ()  # its names, the longest first; empty for the numbers of its batches
    length: float = math.nan  # over all parameters; NaN where it is not known


@dataclass(frozen=True)
class Arrows:
    """The contents of ``.grad``: the measured contributions, drawn head to tail from a common start.

    Of a model with two weights they lie on its ``contours``, from where the weights are. Of any other they are laid
    flat: each has its true length and goes as far along the sum, ``x``, as it truly does; their sides take turns.
    """

    arrows: Sequence[BatchArrow]  # the oldest first
    total: tuple[float, float]  # what ``.grad`` holds
    holds: Sequence[Span] = ()  # batches inside ``.grad`` over all parameters
    contours: Contours | None = None
    measured: bool = True  # False if the newest batch was not measured when it came
    elements: int = 0  # numbers that ``.grad`` has, of arrows laid flat
    reach: float = 0.0  # how much of ``.grad`` the picture holds (``Camera``); 0 for as much as the arrows need
    path: Sequence[tuple[float, float]] = ()  # the path of two weights, the oldest first
    move: tuple[float, float] | None = None  # what the next step adds to two weights, where plain SGD takes it
    one_batch: float = 0.0  # a usual length of one batch, as a yardstick; 0 for none


@dataclass(frozen=True)
class Landscape:
    """The loss surface of a two-weight model with the path of the weights (oldest first, thinned)."""

    contours: Contours
    path: Sequence[tuple[float, float]]
    arrows: Arrows | None = None  # the contents of ``.grad`` there


@dataclass(frozen=True)
class ScalerHistory:
    """The loss scale over updates, the updates whose step was skipped, and underflow as shares from 0 to 1."""

    updates: Sequence[float]
    scale: Sequence[float]
    skipped: Sequence[int]
    underflow: Sequence[float]
    """Share of gradient elements that fp16 would round to zero if the loss were not scaled."""


@dataclass(frozen=True)
class Samples:
    """Held-out digits with the model's answer. ``images`` is n x 8 x 8, values 0 to 1."""

    images: Sequence[Sequence[Sequence[float]]]
    predicted: Sequence[int]
    actual: Sequence[int]
    accuracy: float


@dataclass(frozen=True)
class Memory:
    """Bytes by category over the last watched updates, statement by statement.

    A statement holds one point or more: what was alive while one module was at work. Where both are known, the points
    of an interval come in pairs, its highest moment and then its end. All bytes count each storage once.
    """

    statements: Sequence[str]
    """The label of each statement of all shown updates, in the order in which they ran: "zero_grad", ..."""
    starts: Sequence[int] = ()  # the index of each statement's first point
    categories: dict[str, Sequence[int]] = field(default_factory=dict)
    """"weights", "gradients", ... -> bytes at every point."""
    updates: Sequence[tuple[int, int]] = ()
    """(index of its first statement, number of the update) for each shown update, oldest first."""
    modules: Sequence[str] = ()  # the dotted name of the module at work at each point, "" outside of all
    capacity: tuple[str, int] | None = None  # name and usable bytes of the card that the peak is held against
    allocated: int | None = None  # CUDA only: bytes that the allocator has handed out now
    reserved: int | None = None  # CUDA only: bytes that the allocator holds from the driver now
    note: str = ""  # a remark for the learner: "1 update in 12 is watched"


@dataclass(frozen=True)
class Fit:
    """Peaks of memory against the capacities of cards."""

    bars: Sequence[tuple[str, dict[str, int]]]
    """(label, bytes by category at the peak and beside the tensors), left to right; the last is the one in question."""
    cards: Sequence[tuple[str, int]]  # (name, usable bytes) of each card that is drawn as a line
    title: str = ""
    verdict: str = ""  # whether the last bar fits a card, in words


Scene = Curve | Arrows | Landscape | ScalerHistory | Samples | Memory | Fit
