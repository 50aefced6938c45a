"""Whether anything but an optimizer's step has written to the weights, told from a few of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ... import _torch
from ..events import bit_positions
from .param_index import ParamIndex

_LOOKS = 32  # at the beginning; afterwards only if something was found
_PARAMS, _ELEMENTS = 4, 8  # of each of so many optimizers
_OPTIMIZERS = 64
_Mark = tuple[int, str]  # version, and the first values in words: NaN equals itself there


class WeightMarks:
    """What a few parameters of each optimizer were when they were looked at last."""

    def __init__(self, index: ParamIndex) -> None:
        self._index = index
        self.looks = _LOOKS
        """How often they will still be looked at."""
        self._marks: dict[int, _Mark] = {}
        self._known: set[int] = set()
        self.sampled = 0
        """The parameters that are looked at."""

    def settle(self, params: int) -> None:
        """Take the weights of some parameters as they are now: an optimizer has moved them."""
        if params not in self._known and len(self._known) < _OPTIMIZERS:
            self._known.add(params)
            if not self.looks:
                self.looks = _LOOKS  # for what a new optimizer brings
                self._look(-1)
            numbers = bit_positions(params)
            last = len(numbers) - 1
            for number in {numbers[last * step // (_PARAMS - 1)] for step in range(_PARAMS) if numbers}:
                self._marks[number] = (0, "")
                self.sampled |= 1 << number
        if self.looks:
            self._look(params)

    def moved(self, *, inside: bool) -> int:
        """Return those of the sample that were written to since they were looked at last.

        ``inside`` says that gradients wait for a step: if weights are written to there, it is worth looking on.
        """
        if not self.looks or not self._marks:
            return 0
        self.looks -= 1
        moved = self._look(-1)
        if moved and inside:
            self.looks = _LOOKS
        return moved

    def _look(self, params: int) -> int:
        moved = 0
        with torch.no_grad(), _torch.disable_current_modes():  # the learner's own modes are not to see this
            for number, before in self._marks.items():
                if params >> number & 1 and (mark := self._mark(number)) != before:
                    self._marks[number] = mark
                    moved |= 1 << number
        return moved

    def _mark(self, number: int) -> _Mark:
        param = self._index.param(number)
        if param is None or param.is_inference():
            return (0, "")
        plain = type(param) in (Tensor, nn.Parameter) and param.is_cpu  # a write through ``.data`` raises no version
        return param._version, str(first_values(param, _ELEMENTS).tolist()) if plain else ""


def first_values(param: Tensor, most: int) -> Tensor:
    """Return a view of the first values, in one row where the rows do not follow one another."""
    row = param.detach()
    while row.dim() > 1 and not row.is_contiguous():
        row = row[0]
    return row.view(-1)[:most]
