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
    newest: float
    """Norm of what the newest backward added to something, without the loss scale; NaN if it was not measured."""


def read_contents(tracked: list[tuple[ParameterHistory, Tensor]], backwards: int, newest_scale: float) -> GradContents:
    """Read the synced histories of all parameters and their gradients; this waits for the device.

    ``backwards`` is the number of the newest backward, ``newest_scale`` what its loss was multiplied by.
    """
    grads = [(history, param.grad.detach()) for history, param in tracked if param.grad is not None]
    newest = [(history, grad) for history, grad in grads if history.batches and history.batches[-1][1] == backwards]
    return GradContents(
        holds=union(span for history, _ in tracked for span in history.batches),
        stale=union(span for history, _ in tracked for span in history.applied()),
        leftover=union(span for history, _ in tracked for span in history.leftover()),
        norm=math.hypot(*(_norm(grad) for _, grad in grads)),
        newest=math.hypot(*(_newest(history, grad, newest_scale) for history, grad in newest)),
    )


def _newest(history: ParameterHistory, grad: Tensor, scale: float) -> float:
    """Norm of the newest contribution: ``.grad`` itself, unless it was added to something."""
    if not history.was_added:
        return _norm(grad)
    return math.nan if history.newest is None else math.sqrt(float(history.newest[0])) / scale


def _norm(grad: Tensor) -> float:
    return float(grad.float().norm())
