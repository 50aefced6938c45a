"""What SGD does on a parabola: its path as PyTorch computes it, and what the recurrence of its updates predicts.

The loss is ``curvature / 2 * w**2``, so the gradient is ``curvature * w``. With ``s = lr * curvature`` and the momentum
``b``, inserting ``w[t] = z**t`` into the updates gives

    with zero_grad          (z - 1) (z - b) + s z = 0
    without zero_grad       (z - 1)**2 (z - b) + s z**2 = 0     (b = 0: z**2 - (2 - s) z + 1 = 0)

The path follows the root of the largest size: ``|z|`` is the factor by which an update changes the size of the swing,
and the angle of ``z`` is how far an update goes around. Without zero_grad and without momentum this is momentum with
b = 1. The recurrence is that of Polyak, "Some methods of speeding up the convergence of iteration methods" (1964).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch

UPDATES = 120
FARTHEST = 1.2
"""How far from the minimum, at 0, a path may start."""
_EDGE = 1e-4  # of a factor by which an update changes the swing, that counts as none
_FAR = 1e6
_RUNS_TO = 3.0  # to where a path that runs away is drawn; it starts at 1
_SMALL = 1e-9  # below it rounding decides

Stability = Literal["settles", "swings for ever", "runs away"]


@dataclass(frozen=True)
class SwingPath:
    """One run: the weight before each update and after the last, and what was predicted and measured of it."""

    weights: tuple[float, ...]
    """The first is the start. Ends where the weight is no finite number any more."""
    factor: float
    """Predicted: by what an update multiplies the size of the swing."""
    double: bool
    """Whether two roots coincide: then the size of the swing is also multiplied by the number of updates."""
    predicted_period: float
    """Updates of a whole swing, there and back; inf where the weight does not change sides."""
    measured_period: float
    """From the places where the weight passes 0; NaN where there are fewer than three."""

    @property
    def stability(self) -> Stability:
        """What becomes of the swing, by the predicted factor."""
        if self.factor > 1 + _EDGE or (self.double and self.factor > 1 - _EDGE):
            return "runs away"
        return "swings for ever" if self.factor > 1 - _EDGE else "settles"

    @property
    def largest(self) -> float:
        """The size of the swing at the start, as far as later weights tell: the weight over the predicted factor."""
        sizes = [(abs(weight), self.factor**at) for at, weight in enumerate(self.weights)]
        return max(weight / by for weight, by in sizes if by > _SMALL)


def source(lr: float, curvature: float, momentum: float, zero_grad: bool, start: float = 1.0) -> str:
    """Return the loop as it is shown and run."""
    clear = "    optimizer.zero_grad()\n" if zero_grad else ""
    beta = f", momentum={momentum:g}" if momentum else ""
    return (
        f"w = torch.tensor({float(start)!r}, dtype=torch.float64, requires_grad=True)\n"
        f"optimizer = torch.optim.SGD([w], lr={lr:g}{beta})\n"
        f"for update in range({UPDATES}):\n"
        f"{clear}"
        f"    loss = {curvature:g} / 2 * w**2\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
        "    path.append(w.item())\n"
    )


@lru_cache(maxsize=8)
def run_swing(lr: float, curvature: float, momentum: float, zero_grad: bool, start: float = 1.0) -> SwingPath:
    """Run the shown loop, and predict it."""
    path: list[float] = [start]
    text = source(lr, curvature, momentum, zero_grad, start)
    with torch.enable_grad():
        exec(compile(text, "<the swing>", "exec"), {"torch": torch, "path": path})
    finite = next((at for at, weight in enumerate(path) if not abs(weight) < _FAR), len(path))
    root, double = leading_root(lr * curvature, momentum, zero_grad)
    angle = abs(math.atan2(root.imag, root.real))
    period = 2 * math.pi / angle if angle > 1e-9 else math.inf
    return SwingPath(tuple(path[:finite]), abs(root), double, period, measured_period(path[:finite]))


def axis_reach(lr: float, curvature: float, momentum: float, zero_grad: bool) -> float:
    """Return how far the axis of the weight goes: the same for every start, so that it rests while one is dragged."""
    path = run_swing(lr, curvature, momentum, zero_grad, 1.0)
    most = max(abs(weight) for weight in path.weights)
    return FARTHEST * 1.04 * max(1.0, min(_RUNS_TO, most) if path.stability == "runs away" else most)


def leading_root(s: float, momentum: float, zero_grad: bool) -> tuple[complex, bool]:
    """Return the root that the path follows, and whether it is a double one; ``s`` is lr times curvature."""
    found = sorted(recurrence_roots(np.array([s]), np.array([momentum]), zero_grad)[0], key=abs)
    return complex(found[-1]), abs(found[-1] - found[-2]) < 1e-6


def recurrence_roots(s: Any, momentum: Any, zero_grad: bool) -> Any:
    """Return the roots for arrays of s and momentum, a row each, as eigenvalues of the companion matrices."""
    if zero_grad:
        coefficients = np.stack([s - 1 - momentum, momentum], axis=-1)
    else:
        coefficients = np.stack([s - 2 - momentum, 1 + 2 * momentum, -momentum], axis=-1)
    size = coefficients.shape[-1]
    companion = np.zeros((*coefficients.shape[:-1], size, size))
    companion[..., 0, :] = -coefficients
    companion[..., range(1, size), range(size - 1)] = 1.0
    found = np.linalg.eigvals(companion)
    if not zero_grad:  # without momentum a root is 0 by name only
        found = np.where(np.abs(found) < 1e-12, 0, found)
    return found


def measured_period(path: list[float]) -> float:
    """Return twice the mean distance between the places where the path passes 0, NaN for fewer than three."""
    crossings = [
        at + before / (before - after)
        for at, (before, after) in enumerate(pairwise(path))
        if before * after < 0 or (after == 0 != before)
    ]
    if len(crossings) < 3:
        return math.nan
    return 2 * (crossings[-1] - crossings[0]) / (len(crossings) - 1)
