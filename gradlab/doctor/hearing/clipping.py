"""Clipping: which gradients are clipped, and when."""

from __future__ import annotations

import sys
from typing import Any

from torch import Tensor

from ..clerk import Clerk
from ..events import Clip
from ..patches import carefully
from ..sites import outside, site


class Clippings(Clerk):
    """Listens inside the functions that clip: a name imported before the watch leads there, too."""

    def _clip(self, original: Any) -> Any:
        def clip(parameters: Any, max_norm: float, *args: Any, **kwargs: Any) -> None:
            params = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            if not self._mine():
                return original(params, max_norm, *args, **kwargs)
            self._clipping(params, measures=max_norm == float("inf"))
            result = original(params, max_norm, *args, **kwargs)
            self._clipped(params)
            return result

        return clip

    @carefully
    def _clipping(self, params: list[Any], *, measures: bool) -> None:
        pages = self.pages.of(p for p in params if isinstance(p, Tensor) and p.is_leaf)
        self._scan(pages)
        self._emit(Clip(site(), pages, measures=measures))

    @carefully
    def _clipped(self, params: list[Any]) -> None:
        self.pages.look(self.pages.known(params))

    def _clip_value(self, original: Any) -> Any:
        def group(lists: Any, *args: Any, **kwargs: Any) -> Any:
            if self._mine() and outside(sys._getframe(1)).f_code.co_name == "clip_grad_value_":
                self._clipping_values(lists[0])
            return original(lists, *args, **kwargs)

        return group

    @carefully
    def _clipping_values(self, grads: list[Tensor]) -> None:
        pages = self.pages.holding(grads)
        self._scan(pages)
        self._absorbed |= pages
        self._emit(Clip(site(), pages, measures=False))
