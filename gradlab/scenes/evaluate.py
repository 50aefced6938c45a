"""What a model says beside its training, without leaving a trace: predictions, held-out loss, contours of the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from .._process import RandomStream
from ..loop import Counterfactual, History, Run
from ..tasks import TwoWeights
from .kinds import Contours, Curve


def with_state(model: nn.Module, state: dict[str, torch.Tensor]) -> Callable[..., Any]:
    """Return the model as a function that computes with other weights and buffers."""
    return lambda *args, **kwargs: torch.func.functional_call(model, state, args, kwargs)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model in evaluation mode, without gradients, its random numbers those of seed 0; undo all of it after."""
    on_gpu = any(parameter.is_cuda for parameter in model.parameters())
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad(), RandomStream(0, cuda=on_gpu):
            model.eval()
            yield
    finally:
        for module, training in modes:
            module.training = training


def loss_curve(history: History) -> Curve:
    """Return the loss of a run's history as a scene."""
    rows = history.rows
    switches = tuple(history.switches)
    return Curve(rows["update"], rows["loss"], rows["low"], rows["high"], switches, history.broken, history.loss)


_MOST_WAITING = 64  # losses left on the device; reading one off a GPU makes the CPU wait


class HeldOutLoss:
    """Measures a run's loss on the held-out examples of its task, from the moment it is made."""

    def __init__(self, run: Run | Counterfactual) -> None:
        """Measure after each update of ``run`` from now on; its task must have held-out examples."""
        if run.task.held_out is None:
            raise ValueError(f"HeldOutLoss: task must have held-out examples, got {run.task.name!r}")
        self._run = run
        self._x, self._y = (part.to(run.task.device) for part in run.task.held_out)
        self._begin()
        run.after_update = self._measure

    def curve(self) -> Curve:
        """Return what was measured as a scene, on a linear axis."""
        if self._run.updates < self._last:  # the run began again, and has made no update since
            self._begin()
        self._write()
        switches = tuple(self._run.record.switches)
        return replace(loss_curve(self._history), switches=switches, title="held-out loss", linear=True)

    def _begin(self) -> None:
        self._history = History()
        self._waiting: list[tuple[int, Any]] = []
        self._last = 0

    def _measure(self) -> None:
        if self._run.updates <= self._last:
            self._begin()
        self._last = self._run.updates
        model = self._run.model
        with evaluating(model):
            self._waiting.append((self._last, self._run.task.loss_fn(model(self._x), self._y)))
        if len(self._waiting) >= _MOST_WAITING:
            self._write()

    def _write(self) -> None:
        for update, loss in self._waiting:
            self._history.write(update, float(loss), math.nan, math.nan, math.nan, skipped=False)
        self._waiting.clear()


_STEPS = 41  # along each side of the surface
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
        x, y = (torch.linspace(c - self._half, c + self._half, _STEPS) for c in self._centre)
        weights = torch.stack([x.repeat(_STEPS), y.repeat_interleave(_STEPS)], 1).to(self._task.device)
        names = [(name, p.shape, p.numel()) for name, p in self._model.named_parameters()]
        batches = list({id(b): b for b in self._task.batches}.values())

        def loss(two: torch.Tensor) -> torch.Tensor:
            parts, start = {}, 0
            for name, shape, size in names:
                parts[name] = two[start : start + size].reshape(shape)
                start += size
            call = with_state(self._model, parts)
            return torch.stack([self._task.loss_of(call, batch) for batch in batches]).mean()

        with evaluating(self._model):
            surface = torch.func.vmap(loss)(weights).reshape(_STEPS, _STEPS)
        return Contours(x.tolist(), y.tolist(), surface.tolist())
