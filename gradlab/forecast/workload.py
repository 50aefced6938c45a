"""Workloads: what a forecast can be about, a task, a module with a sample batch, or a published size."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .. import tasks
from .._checks import one_of, whole_number
from .fake_mode import CpuFakeTensorMode
from .sizes import ModelSize, model_size, model_sizes
from .transformer import Decoder, next_token_loss

TensorPair = tuple[Tensor, Tensor]
LARGEST_BATCH = 2**20


@dataclass(frozen=True)
class Workload:
    """A model that can be built on fake tensors, samples of its batches, and its loss."""

    name: str
    build: Callable[[CpuFakeTensorMode], nn.Module]
    samples: list[TensorPair]
    """Real batches, or tensors on "meta" where only the shape is known."""
    loss_fn: Callable[[Any, Any], Tensor]
    device: str
    batch: int | None = None
    """Rows of every batch; None leaves them as the samples have them."""
    size: ModelSize | None = None

    def resized(self, batch: int) -> Workload:
        """Return the same with another number of rows in each batch."""
        return dataclasses.replace(self, batch=batch)

    def with_layers(self, layers: int) -> Workload:
        """Return the same published size with another number of layers."""
        assert self.size is not None
        size = dataclasses.replace(self.size, layers=layers)
        return dataclasses.replace(self, size=size, build=_builder(size))

    @property
    def rows(self) -> int:
        """Rows of the first batch."""
        return self.batch or len(self.samples[0][0])

    def batches(self, mode: CpuFakeTensorMode, window: int) -> tuple[list[TensorPair], int]:
        """Return fake batches for two updates and the epochs that these take.

        A task's are its own, the first two windows; one sample stands for a window of batches of its kind.
        """
        if len(self.samples) == 1:
            return [self._fake(mode, self.samples[0], first=i == 0) for i in range(window)], 2
        samples = self.samples[: 2 * window]
        return [self._fake(mode, sample, first=True) for sample in samples], 1 if len(samples) == 2 * window else 2

    def _fake(self, mode: CpuFakeTensorMode, sample: TensorPair, *, first: bool) -> TensorPair:
        x, y = sample
        if self.batch is None and first:
            return mode.fake(x), mode.fake(y)
        with mode:
            rows = (len(x), len(y)) if self.batch is None else (self.batch, self.batch)
            return (
                torch.empty((rows[0], *x.shape[1:]), dtype=x.dtype),
                torch.empty((rows[1], *y.shape[1:]), dtype=y.dtype),
            )


def as_workload(what: Any, batch: Any, context: Any, loss_fn: Any) -> Workload:
    """Return what a forecast was asked about; a TypeError or ValueError names what is wrong and what is allowed."""
    if isinstance(what, str):
        if what in model_sizes():
            return _size(model_size(what), batch, context, loss_fn)
        what = tasks.get(one_of("forecast: the name", what, [*model_sizes(), *tasks.names()]), device="cpu")
    if context is not None:
        raise ValueError(
            f"forecast: context is for the sizes {', '.join(map(repr, model_sizes()))}, got context={context!r}; "
            "the samples of a task or a module say how long theirs is"
        )
    if isinstance(what, tasks.Task):
        if loss_fn is not None:
            raise ValueError(f"forecast: a task has a loss of its own, got loss_fn={loss_fn!r}; leave it out")
        return _task(what, batch)
    if isinstance(what, nn.Module):
        return _module(what, batch, loss_fn)
    raise TypeError(
        "forecast: give a Task, the name of one, a torch.nn.Module with batch=(x, y), or one of "
        f"{', '.join(map(repr, model_sizes()))}, got {what!r}"
    )


def _size(size: ModelSize, batch: Any, context: Any, loss_fn: Any) -> Workload:
    if loss_fn is not None:
        raise ValueError(f"forecast: {size.name!r} has a loss of its own, got loss_fn={loss_fn!r}; leave it out")
    rows = whole_number("forecast: batch", 1 if batch is None else batch, 1, LARGEST_BATCH)
    context = min(2048, size.max_context) if context is None else context
    long = whole_number(f"forecast: context of {size.name!r}", context, 1, size.max_context)
    tokens = torch.empty(rows, long, dtype=torch.int64, device="meta")
    return Workload(size.name, _builder(size), [(tokens, tokens)], next_token_loss, "cuda", rows, size)


def _builder(size: ModelSize) -> Callable[[CpuFakeTensorMode], nn.Module]:
    def build(mode: CpuFakeTensorMode) -> nn.Module:
        with mode:
            return Decoder(size)

    return build


def _task(task: tasks.Task, batch: Any) -> Workload:
    rows = None if batch is None else whole_number("forecast: batch of a task", batch, 1, LARGEST_BATCH)

    def build(mode: CpuFakeTensorMode) -> nn.Module:
        with mode:  # a fake model cannot be moved, so it is built on the CPU
            return dataclasses.replace(task, device="cpu").build(0)

    # With a batch size of one's own all batches are alike, so one stands for all.
    samples = task.batches if rows is None else task.batches[:1]
    return Workload(task.name, build, samples, task.loss_fn, task.device, rows)


def _module(module: nn.Module, batch: Any, loss_fn: Any) -> Workload:
    name = type(module).__name__
    if not isinstance(batch, (tuple, list)) or len(batch) != 2 or not all(isinstance(t, Tensor) for t in batch):
        got = " ".join(repr(batch).split())[:80]
        raise TypeError(f"forecast: a module needs a sample batch, batch=(x, y) of two tensors, got batch={got}")
    if not all(t.ndim and t.numel() for t in batch):
        raise ValueError("forecast: x and y of batch=(x, y) must have at least one row, got an empty one or a number")
    if loss_fn is not None and not callable(loss_fn):
        raise TypeError(f"forecast: loss_fn must be a function (output, y) -> loss, got {loss_fn!r}")
    if not any(p.requires_grad for p in module.parameters()):
        raise ValueError(f"forecast: {name} has no parameter that wants a gradient, so there is nothing to train")
    x, y = batch
    on_gpu = any(p.is_cuda for p in module.parameters())
    return Workload(
        name, lambda mode: mode.copy(module), [(x, y)], loss_fn or default_loss, "cuda" if on_gpu else "cpu"
    )


def default_loss(output: Tensor, y: Tensor) -> Tensor:
    """Return the cross-entropy where y holds whole numbers, with the classes last or second; else the squared error."""
    if y.is_floating_point():
        return nn.functional.mse_loss(output, y)
    if output.shape[:-1] == y.shape:
        return nn.functional.cross_entropy(output.flatten(0, -2), y.flatten())
    return nn.functional.cross_entropy(output, y)
