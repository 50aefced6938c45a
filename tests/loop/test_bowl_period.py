"""Without ``zero_grad`` a weight swings: the half-period and the limits of stability, predicted and then measured.

Plain SGD without clearing is w(t+1) = w(t) - lr * (g(1) + ... + g(t)). On a quadratic of curvature lambda that is
w(t+1) - 2 w(t) + w(t-1) = -lr * lambda * w(t), solved by cos(omega t + phase) with cos(omega) = 1 - lr * lambda / 2:
a swing of half-period pi / omega up to lr * lambda = 4; above, it grows without bound.
"""

from __future__ import annotations

import itertools
import math

import pytest

from gradlab import Recipe, Run, tasks

# (lr, lambda): from a swing of 11 updates to one that almost changes sign at each update
PAIRS = [(0.1, 3.0), (0.7, 4.0), (1.98, 2.0)]
ABOVE = [(1.0, 4.04), (0.01, 500.0)]


def swing(lr: float, curvature: float, updates: int, zero_grad: bool = False) -> list[float]:
    """The first weight after 0, 1, 2, ... updates; the minimum is at 0."""
    task = tasks.bowl(curvatures=(curvature, curvature), start=(1.0, 0.5), device="cpu")
    run = Run(task, Recipe(lr=lr, zero_grad=zero_grad))
    weight = next(run.model.parameters())
    values = [weight.tolist()[0][0]]
    for _ in range(updates):
        run.advance(updates=1)
        values.append(weight.tolist()[0][0])
    return values


def crossings(values: list[float]) -> list[float]:
    """Return the zeros of the straight lines from each value to the next, in updates."""
    pairs = enumerate(itertools.pairwise(values))
    return [i + a / (a - b) for i, (a, b) in pairs if a * b < 0 or (a == 0 != b)]


@pytest.mark.slow
@pytest.mark.parametrize(("lr", "curvature"), PAIRS)
def test_the_half_period_and_the_amplitude_are_as_predicted(lr: float, curvature: float) -> None:
    predicted = math.pi / math.acos(1 - lr * curvature / 2)
    values = swing(lr, curvature, 600)
    zeros = crossings(values)
    swings = len(zeros) - 1
    assert swings >= 18
    assert (zeros[-1] - zeros[0]) / swings == pytest.approx(predicted, rel=0.01)
    early, late = (max(map(abs, part)) for part in (values[:200], values[-200:]))
    assert late == pytest.approx(early, rel=0.05)
    assert late < 21  # the amplitude is 1 / cos of half a step of phase: large, but finite, near the limit


@pytest.mark.parametrize(("lr", "curvature"), ABOVE)
def test_it_diverges_above_4(lr: float, curvature: float) -> None:
    values = swing(lr, curvature, 300)
    peaks = [largest(values[i : i + 50]) for i in range(0, 300, 50)]
    assert all(later > 5 * earlier or later == math.inf for earlier, later in itertools.pairwise(peaks))


def largest(values: list[float]) -> float:
    """The largest magnitude; infinite if a value is not a number any more."""
    return max(abs(value) if math.isfinite(value) else math.inf for value in values)


def test_between_2_and_4_only_the_loop_that_clears_diverges() -> None:
    assert largest(swing(0.75, 4.0, 200, zero_grad=True)) > 1e20
    assert largest(swing(0.75, 4.0, 600, zero_grad=False)) < 5
