"""The largest number that fits, found with few forecasts, since each takes seconds for a large model."""

from __future__ import annotations

from collections.abc import Callable

from .simulate import SimulatedUpdate

_GUESSES = 8  # after so many the search halves what is left


def largest_that_fits(simulate: Callable[[int], SimulatedUpdate], limit: int, upper: int, start: int) -> int:
    """Return the largest n up to ``upper`` whose peak is within ``limit``, 0 if none; ``start`` is where to begin.

    Every stretch of the timeline grows about linearly with n, but not all of them equally, so that the peak bends. The
    guess comes from all stretches of two forecasts; what is returned was forecast itself, and so was the next one.
    """
    seen: dict[int, SimulatedUpdate] = {}
    low, high, guess = 0, upper + 1, start  # low fits, high does not
    while high - low > 1:
        n = min(max(guess, low + 1), high - 1)
        seen[n] = simulate(n)
        if seen[n].peak <= limit:
            low = n
        else:
            high = n
        if low == 0:
            guess = 1
        elif len(seen) == 1:
            guess = 2 * low
        elif len(seen) > _GUESSES:
            guess = (low + high) // 2
        else:
            first, second = [*sorted(n for n in seen if n <= low)[-2:], *sorted(n for n in seen if n >= high)[:1]][-2:]
            guess = _crossing(first, seen[first], second, seen[second], limit)
    return low


def _crossing(n: int, at_n: SimulatedUpdate, m: int, at_m: SimulatedUpdate, limit: int) -> int:
    """Return the last number at which no stretch is above the limit, if each grows along a line."""
    pairs = [(at_n.peak, at_m.peak)]
    if len(at_n.timeline) == len(at_m.timeline):
        pairs += [(a.top, b.top) for a, b in zip(at_n.timeline, at_m.timeline, strict=True)]
    room = [n + (limit - a) * (m - n) // (b - a) for a, b in pairs if b > a]
    return min(room, default=2 * m)
