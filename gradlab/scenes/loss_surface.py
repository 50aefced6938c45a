"""The loss over the plane of two weights, worked out once and again only when the weights leave what is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from ..tasks import TwoWeights
from .evaluate import evaluating
from .kinds import Contours

_POINTS = 41
_WIDEST = 1e6
_GROWTH = 1.5


class LossSurface:
    """Contours around the task's minimum, in a square that grows in steps with the way of the weights."""

    def __init__(self, task: Any, model: nn.Module) -> None:
        """Take a task whose model has two weights."""
        self._task = task
        self._model = model
        self._centre: tuple[float, float] = task.picture.minimum if isinstance(task.picture, TwoWeights) else (0.0, 0.0)
        self._half = 0.0
        self._contours: Contours | None = None

    def contours(self, must_cover: Iterable[float]) -> Contours:
        """Return contours that show weights with these coordinates; the same object while they still do."""
        far = [abs(value - c) for value in must_cover if math.isfinite(value) for c in self._centre]
        need = min(1.3 * max(far, default=1.0), _WIDEST) or 1.0
        if self._contours is None or need > self._half:
            # The first square fits; later ones grow by half, so that a run that swings ever wider seldom needs one.
            self._half = need if self._contours is None else max(need, _GROWTH * self._half)
            self._contours = self._compute()
        return self._contours

    def _compute(self) -> Contours:
        x, y = (torch.linspace(c - self._half, c + self._half, _POINTS) for c in self._centre)
        weights = torch.stack([x.repeat(_POINTS), y.repeat_interleave(_POINTS)], 1).to(self._task.device)
        names = [(name, p.shape, p.numel()) for name, p in self._model.named_parameters()]
        batches = list({id(b): b for b in self._task.batches}.values())

        def loss(two: torch.Tensor) -> torch.Tensor:
            parts, start = {}, 0
            for name, shape, size in names:
                parts[name] = two[start : start + size].reshape(shape)
                start += size
            losses = [
                self._task.loss_fn(
                    torch.func.functional_call(self._model, parts, (a.to(two.device),)), b.to(two.device)
                )
                for a, b in batches
            ]
            return torch.stack(losses).mean()

        with evaluating(self._model):
            surface = torch.func.vmap(loss)(weights).reshape(_POINTS, _POINTS)
        return Contours(x.tolist(), y.tolist(), surface.tolist())
