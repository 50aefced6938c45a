"""What ``.grad`` holds over all parameters of a model at one moment, read from their histories."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from .parameter import ParameterHistory
from .spans import Span, union


@dataclass(frozen=True)
class GradContents:
    """Batches inside ``.grad``, and norms."""

    holds: list[Span]
    stale: list[Span]
    """Of these, what a step has applied."""
    leftover: list[Span]
    """Of these, what was applied before the newest batch came: what should have been cleared."""
    norm: float


def read_contents(tracked: list[tuple[ParameterHistory, Tensor]]) -> GradContents:
    """Read the synced histories of all parameters and their gradients; this waits for the device."""
    return GradContents(
        holds=union(span for history, _ in tracked for span in history.batches),
        stale=union(span for history, _ in tracked for span in history.applied()),
        leftover=union(span for history, _ in tracked for span in history.leftover()),
        norm=math.hypot(*(_norm(param.grad.detach()) for _, param in tracked if param.grad is not None)),
    )


def _norm(grad: Tensor) -> float:
    return float(grad.float().norm())
