"""Looks at losses when backward begins: their numbers always, their graphs and expressions now and then."""

from __future__ import annotations

import math
from types import FrameType
from typing import Any

from torch import Tensor

from ..._frames import user_frame
from ..events import Backward, LossFlaw
from ..source.loss_edits import kept_in_range
from ..source.loss_terms import find_cut_term
from .autograd_graph import OpTracer, made_by
from .loss_graph import compiled, find_flaws
from .nan_origin import NanOrigin, find_nan_origin, spoilt_weights

_MOST_CALL_PATHS = 256
# Passes of a call path that are looked at: a term may be added at the first, and then at each 2nd, 4th or 16th only.
_LOOKS = frozenset((1, 2, 3, *(2**power + 1 for power in range(2, 40, 2))))
_LAST_READ = 17  # the last of them whose source is read


class LossWatcher:
    """Fills in what an event tells of its loss."""

    def __init__(self) -> None:
        self.tracer = OpTracer()
        self.compiled = False
        """Is a loss computed from a model whose graph is a single node?"""
        self._passes: dict[int, int] = {}  # call path -> number of its passes
        self._origins: dict[int, NanOrigin] = {}  # call path -> what made its first NaN
        self._traced: set[int] = set()  # call paths whose flaws have their lines
        self._spoilt: set[int] = set()  # call paths that go on with weights that are not finite

    def look(self, backward: Backward, root: Tensor, node: Any, frame: FrameType | None) -> None:
        """Look at a loss before its backward pass runs."""
        path = backward.call_path
        traced = self.tracer.pass_begins(path)
        if len(self._passes) >= _MOST_CALL_PATHS:
            self._passes.clear()
            self._traced.clear()
            self._spoilt.clear()
        count = self._passes[path] = self._passes.get(path, 0) + 1
        backward.loss = loss = _loss_number(root)
        if count in _LOOKS or traced:
            flaws = find_flaws(node, frame)
            if flaws and traced:
                self._traced.add(path)
            elif flaws and path not in self._traced:
                self.tracer.ask(path)
            if 1 < count <= _LAST_READ and (own := user_frame(frame)) is not None and (cut := find_cut_term(own, node)):
                flaws.append(cut)
            backward.flaws = tuple(flaws)
            self.compiled = self.compiled or compiled(node)
        if type(loss) is float and not math.isfinite(loss):
            self._not_finite(backward, node, traced=traced)

    def _not_finite(self, backward: Backward, node: Any, *, traced: bool) -> None:
        """Find the operation in the first such graph, and its line in the next one."""
        path = backward.call_path
        origin = self._origins.get(path)
        if origin is not None and path not in self._spoilt and spoilt_weights(node):
            self._spoilt.add(path)
            backward.flaws = (*backward.flaws, LossFlaw("nan-spoilt"))
        if origin is None:
            if len(self._origins) >= _MOST_CALL_PATHS:
                return
            origin = self._origins[path] = find_nan_origin(node)
            if origin.path:
                self.tracer.ask(path)
        elif not traced:
            return
        culprit = origin.node(node) if traced else None
        lines = made_by(culprit) if culprit is not None else ()
        edit = kept_in_range(lines[-1], origin.words) if lines else None
        backward.flaws = (*backward.flaws, LossFlaw(f"nan-{origin.kind}", origin.words, edit=edit))


def _loss_number(loss: Tensor) -> Any:
    """Return the number that a loss is; on a GPU a copy that is read later, since nothing is to wait for it."""
    if type(loss) is not Tensor or loss.numel() != 1 or not loss.is_floating_point():
        return None
    try:
        if loss.is_cpu:
            value: Any = loss.tolist()  # item() would go through the dispatcher, past the learner's own modes
            while isinstance(value, list):
                (value,) = value
            return value
        if loss.device.type != "meta" and loss.dim() == 0:
            return loss.detach()
    except RuntimeError:  # inside a transform of torch.func it has no number
        pass
    return None
