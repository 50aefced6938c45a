"""The rules: one file a theme. Each rule follows the facts that concern it, and speaks when it is sure.

A false alarm costs more trust than a miss: where one time could be chance, a rule waits until the pattern repeats.
"""

from __future__ import annotations

from .accumulation import LossNotDivided, WindowDropped, ZeroGradInMicroBatch
from .base import Case, Rule
from .clearing import DoubleStep, ForeignGradients, MissingZeroGrad
from .clipping import Clipping
from .graph import CarriedGraph
from .modes import EvalLeftOn, ValidationInTrainMode
from .scaling import Autocast, Scaling
from .scheduling import Scheduling
from .stepping import EmptyStep, NeverSteps
from .wiring import MissingParams, PartsWithoutGradient

RULES: tuple[type[Rule], ...] = (
    MissingZeroGrad,
    DoubleStep,
    ForeignGradients,
    EmptyStep,
    NeverSteps,
    ZeroGradInMicroBatch,
    WindowDropped,
    LossNotDivided,
    MissingParams,
    PartsWithoutGradient,
    CarriedGraph,
    Clipping,
    Scaling,
    Autocast,
    Scheduling,
    EvalLeftOn,
    ValidationInTrainMode,
)
"""All rules, in the order in which they are asked."""

__all__ = ["RULES", "Case", "Rule"]
