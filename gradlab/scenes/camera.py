"""The scale that all pictures of ``.grad`` in a run share, in which a growing sum looks larger and larger."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import median

BEFORE, BESIDE = 0.1, 0.22  # room before the start of arrows laid flat, and at each side, in units of the reach

_MARGIN_FACTORS = {True: 2.0, False: 1.4}  # whether flat -> first reach, in units of the needed reach
_MAX_BATCHES_OUTSIDE = 3  # number of batches for which arrows may leave the picture before the reach grows
_MIN_GROWTH, _MIN_GROWTH_NEW_LOOP = 1.5, 6.0  # least growth factors of the reach: usually, and in a new loop
_MAX_BATCHES_BETWEEN = 12  # largest number of batches between two pictures for which a reader can follow the arrows
_MOST_LENGTHS = 31  # number of newest arrow lengths of which ``one_batch`` is the median


class Camera:
    """The scale of one run's pictures of ``.grad``: ``reach``, the extent that they show, in units of the gradient.

    The reach changes only after a new batch, never at an optimizer step. While the loop stays the same, the reach only
    grows, by large factors. If the learner returns to an earlier loop, the previous reach for that loop is restored.
    """

    def __init__(self, *, flat: bool) -> None:
        self._flat = flat  # whether the arrows are laid flat, as by ``lay_flat``
        self.reach = 0.0  # extent that the pictures show, in units of the gradient
        self.one_batch = 0.0  # usual length of a batch's arrow: the median of lengths while no batch is reused
        self._newest, self._left_at, self._min_growth = 0, 0, 0.0
        self._loop = ""
        self._reaches: dict[str, float] = {}
        self._lengths: deque[float] = deque(maxlen=_MOST_LENGTHS)

    def observe(self, loop: str, newest: int, need: tuple[float, float], length: float, *, usual: bool) -> None:
        """Update the scale after batch ``newest``, whose arrow has ``length``; if ``usual``, no batch was reused."""
        if newest < self._newest:
            self.__init__(flat=self._flat)  # type: ignore[misc]
        needed = max(need)
        if newest == self._newest or not 0 < needed < math.inf:
            return
        is_continuous, self._newest = newest - self._newest <= _MAX_BATCHES_BETWEEN, newest
        if length > 0 and (usual or not self._lengths):
            self._lengths.append(length)
            self.one_batch = median(self._lengths)
        if loop != self._loop:
            self._reaches[self._loop] = self.reach
            self.reach = self._reaches.get(loop, min(self.reach, 2 * _MARGIN_FACTORS[self._flat] * needed))
            self._loop, self._min_growth = loop, _MIN_GROWTH_NEW_LOOP if self._loop else 0.0
        if needed <= self.reach:
            self._left_at = 0
        elif not self.reach:
            self.reach = _MARGIN_FACTORS[self._flat] * needed
        elif is_continuous and need[1] <= self.reach and newest - (self._left_at or newest) < _MAX_BATCHES_OUTSIDE:
            self._left_at = self._left_at or newest
        else:
            steps = math.ceil(math.log(needed / self.reach, _MIN_GROWTH) - 1e-9)
            self.reach, self._left_at, self._min_growth = self.reach * max(_MIN_GROWTH**steps, self._min_growth), 0, 0.0


def needed_reach(ends: Sequence[tuple[float, float]], *, flat: bool) -> tuple[float, float]:
    """Return the reach that a picture needs to show ``ends``, the ends of arrows and of their sum, as two numbers.

    The second number is for the room behind and beside arrows that are laid ``flat``; for other arrows, it is 0.
    """
    if not flat:
        return max(math.hypot(*end) for end in ends), 0.0
    return max(x for x, _ in ends), max(max(-x / BEFORE, abs(y) / BESIDE) for x, y in ends)
