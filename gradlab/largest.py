"""The largest number that fits, found with few forecasts, since each takes seconds for a large model."""

from __future__ import annotations

from collections.abc import Callable

from .rehearsal import Rehearsal


def largest(at: Callable[[int], Rehearsal], limit: int, most: int, near: int) -> int:
    """Return the largest n up to ``most`` whose peak is within ``limit``, 0 if none; ``near`` is a first guess.

    Every stretch of the timeline grows about linearly with n, but not all equally, so that the peak bends: the guess
    comes from all stretches of two forecasts and is then checked by forecasts of its own.
    """
    low, high = 0, most + 1  # low fits, high does not
    guess = min(max(near, 1), most)
    while high - low > 1:
        n = min(max(guess, low + 1), high - 1)
        if at(n).peak <= limit:
            low = n
        else:
            high = n
        if low == 0 and high > 1:
            guess = 1
        elif low == most:
            break
        else:
            first, second = (low, high) if high <= most else (max(1, low // 2), low)
            guess = _crossing(first, at(first), second, at(second), limit) if first != second else 2 * low
            if guess == low and high - low > 1:
                guess = low + 1
    return low


def _crossing(n: int, at_n: Rehearsal, m: int, at_m: Rehearsal, limit: int) -> int:
    """Return the last number at which no stretch is above the limit, if each grows along a line."""
    pairs = [(at_n.peak, at_m.peak)]
    if len(at_n.timeline) == len(at_m.timeline):
        pairs = [(a.top, b.top) for a, b in zip(at_n.timeline, at_m.timeline, strict=True)]
    room = [n + (limit - a) * (m - n) // (b - a) for a, b in pairs if b > a]
    return min(room, default=2 * m)
