"""Clipping: which gradients are clipped, and when."""

from __future__ import annotations

import math
import sys
from typing import Any

from torch import Tensor

from ... import _torch
from ..events import Clip
from ..frames import call_site, outside_doctor
from .monkeypatch import Below, Listener, MonkeyPatches, never_raises


class ClipListener(Listener):
    """Listens inside the functions that clip: a name imported before the watch leads there, too."""

    def patch(self, patches: MonkeyPatches) -> None:
        """Replace what ``clip_grad_norm_`` and ``clip_grad_value_`` call."""
        patches.replace(*_torch.place("clip_grads_with_norm"), self._clip_norm)
        patches.replace(*_torch.place("group_tensors"), self._clip_value)

    def _clip_norm(self, below: Below) -> Any:
        log = self.log

        def clip(parameters: Any, max_norm: float, *args: Any, **kwargs: Any) -> None:
            tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            measures = max_norm == math.inf
            if not log.is_watched_thread():
                return below.call(tensors, max_norm, *args, **kwargs)
            self._before_norm(tensors, measures=measures)
            result = below.call(tensors, max_norm, *args, **kwargs)
            self._after_norm(tensors)
            return result

        return clip

    @never_raises
    def _before_norm(self, tensors: list[Any], *, measures: bool) -> None:
        params = self.log.index.bits(p for p in tensors if isinstance(p, Tensor) and p.is_leaf)
        self.log.detect_changes(params)
        self.log.emit(Clip(call_site(), params, measures=measures))

    @never_raises
    def _after_norm(self, tensors: list[Any]) -> None:
        self.log.index.changes(self.log.index.known_bits(tensors))

    def _clip_value(self, below: Below) -> Any:
        def group(lists: Any, *args: Any, **kwargs: Any) -> Any:
            clips = outside_doctor(sys._getframe(1)).f_code.co_name == "clip_grad_value_"
            if clips and self.log.is_watched_thread():
                self._before_value(lists[0])
            return below.call(lists, *args, **kwargs)

        return group

    @never_raises
    def _before_value(self, grads: list[Tensor]) -> None:
        params = self.log.index.owning_grads(grads)
        self.log.detect_changes(params)
        self.log.index.expected_changes |= params
        self.log.emit(Clip(call_site(), params, measures=False))
