"""What ``.grad`` holds over all parameters of a model at one moment, read from their pages."""

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
    """Read the folded pages of all parameters and their gradients; this waits for the device.

    ``backwards`` is the number of the newest backward, ``newest_scale`` what its loss was multiplied by.
    """
    grads = [(entry, param.grad.detach()) for entry, param in tracked if param.grad is not None]
    newest = [(entry, grad) for entry, grad in grads if entry.batches and entry.batches[-1][1] == backwards]
    return GradContents(
        holds=union(span for entry, _ in tracked for span in entry.batches),
        stale=union(span for entry, _ in tracked for span in entry.applied()),
        leftover=union(span for entry, _ in tracked for span in entry.leftover()),
        norm=math.hypot(*(_norm(grad) for _, grad in grads)),
        newest=math.hypot(*(_newest(entry, grad, newest_scale) for entry, grad in newest)),
    )


def _newest(entry: ParameterHistory, grad: Tensor, scale: float) -> float:
    """Norm of the newest contribution: ``.grad`` itself, unless it was added to something."""
    if not entry.was_added:
        return _norm(grad)
    return math.nan if entry.newest is None else float(entry.newest) / scale


def _norm(grad: Tensor) -> float:
    return float(grad.float().norm())
