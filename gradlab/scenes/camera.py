"""The reach of the pictures of ``.grad`` in a run: one scale, so that a growing sum is seen to grow."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import median

BEFORE, BESIDE = 0.1, 0.22  # of the reach, that a flat picture shows before the arrows' start, and on either side

_ROOM = {True: 2.0, False: 1.4}  # times what the first picture needs, laid flat or not: a sum of flat ones will grow
_STAYS = 3  # batches for which the arrows may leave the picture before the camera pulls back
_STEP, _LEAP = 1.5, 6.0  # times as far, at least, that it then reaches; the first time in another loop
_FILM = 12  # most batches between two pictures: farther apart, the arrows were not seen to leave
_MOST_LENGTHS = 31


class Camera:
    """The scale of the pictures of one run, kept from picture to picture.

    It changes only when a batch has come, never at a step. While the loop stays the same it reaches only farther, in
    big steps; a loop that comes back has its scale again.
    """

    def __init__(self, *, flat: bool) -> None:
        """Begin without a scale; ``flat``: for arrows laid flat."""
        self._flat = flat
        self.reach = 0.0  # of the picture, in units of the gradient
        self.one_batch = 0.0
        """A usual length of one batch: the median of the newest ones seen while none was applied again."""
        self._newest, self._left, self._leap = 0, 0, 0.0
        self._loop = ""
        self._reaches: dict[str, float] = {}
        self._lengths: deque[float] = deque(maxlen=_MOST_LENGTHS)

    def observe(self, loop: str, newest: int, need: tuple[float, float], length: float, *, usual: bool) -> None:
        """Note the arrows after batch ``newest`` of this ``length``, ``usual`` if none is applied again."""
        if newest < self._newest:
            self.__init__(flat=self._flat)  # type: ignore[misc]
        most = max(need)
        if newest == self._newest or not 0 < most < math.inf:
            return
        follows, self._newest = newest - self._newest <= _FILM, newest
        if length > 0 and (usual or not self._lengths):
            self._lengths.append(length)
            self.one_batch = median(self._lengths)
        if loop != self._loop:
            self._reaches[self._loop] = self.reach
            self.reach = self._reaches.get(loop, min(self.reach, 2 * _ROOM[self._flat] * most))
            self._loop, self._leap = loop, _LEAP if self._loop else 0.0
        if most <= self.reach:
            self._left = 0
        elif not self.reach:
            self.reach = _ROOM[self._flat] * most
        elif follows and need[1] <= self.reach and newest - (self._left or newest) < _STAYS:
            self._left = self._left or newest
        else:
            steps = math.ceil(math.log(most / self.reach, _STEP) - 1e-9)
            self.reach, self._left, self._leap = self.reach * max(_STEP**steps, self._leap), 0, 0.0


def needed_reach(ends: Sequence[tuple[float, float]], *, flat: bool) -> tuple[float, float]:
    """Return the reach that a picture needs for the ends of arrows, head to tail, and of their sum: ahead, and aside.

    ``flat``: they are laid flat (``lay_flat``); a picture of those may let them leave it ahead, not at its sides.
    """
    if not flat:
        return max(math.hypot(*end) for end in ends), 0.0
    return max(x for x, _ in ends), max(max(-x / BEFORE, abs(y) / BESIDE) for x, y in ends)
