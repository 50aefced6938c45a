"""What ``.grad`` holds over all parameters of a model at one moment, read from their pages."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from .parameter import Entry
from .spans import Span


@dataclass(frozen=True)
class Holdings:
    """Batches inside ``.grad``, and norms."""

    holds: list[Span]
    stale: list[Span]
    """Of these, what a step has applied."""
    leftover: list[Span]
    """Of these, what was applied before the newest batch came: what should have been cleared."""
    norm: float
    newest: float
    """Norm of what the newest backward added to something, without the loss scale; NaN if it was not measured."""


def take(pages: list[tuple[Entry, Tensor]], backwards: int, newest_scale: float) -> Holdings:
    """Read the folded pages of all parameters and their gradients; this waits for the device.

    ``backwards`` is the number of the newest backward, ``newest_scale`` what its loss was multiplied by.
    """
    grads = [(entry, param.grad.detach()) for entry, param in pages if param.grad is not None]
    newest = [(entry, grad) for entry, grad in grads if entry.held and entry.held[-1][1] == backwards]
    return Holdings(
        holds=union(span for entry, _ in pages for span in entry.held),
        stale=union(span for entry, _ in pages for span in entry.stale()),
        leftover=union(span for entry, _ in pages for span in entry.leftover()),
        norm=math.hypot(*(_norm(grad) for _, grad in grads)),
        newest=math.hypot(*(_newest(entry, grad, newest_scale) for entry, grad in newest)),
    )


def _newest(entry: Entry, grad: Tensor, scale: float) -> float:
    """Norm of the newest contribution: ``.grad`` itself, unless it was added to something."""
    if not entry.adding:
        return _norm(grad)
    return math.nan if entry.newest is None else float(entry.newest) / scale


def _norm(grad: Tensor) -> float:
    return float(grad.float().norm())


