"""Workloads whose memory can be forecast: a task, a module with a sample batch, or a model of a published size."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from .. import tasks
from .._checks import did_you_mean, require_trainable, whole_number, without_values
from .fake_mode import FakeTensors
from .sizes import ModelSize, model_size, model_sizes
from .transformer import Decoder, next_token_loss

LARGEST_BATCH = 2**20


@dataclass(frozen=True)
class Workload:
    """A training run to forecast: a function that builds the model, sample batches, and the loss function."""

    name: str
    build: Callable[[FakeTensors], nn.Module]
    samples: list[Any]
    """Batches in the form that a Recipe's loop reads; their tensors are on "meta" if only the shape is known."""
    loss_fn: Callable[[Any, Any], Tensor]
    device: str
    batch: int | None = None
    """Number of rows in every batch, or None for as many rows as each sample has."""
    size: ModelSize | None = None
    reader_model: nn.Module | None = None

    def resized(self, batch: int) -> Workload:
        """Return a copy of this Workload that has only the first sample, and ``batch`` rows in each batch."""
        return dataclasses.replace(self, batch=batch, samples=self.samples[:1])

    def with_layers(self, layers: int) -> Workload:
        """Return a copy of this Workload, which must be a published size, with ``layers`` layers in the model."""
        assert self.size is not None
        size = dataclasses.replace(self.size, layers=layers)
        return dataclasses.replace(self, size=size, build=partial(_build_decoder, size=size))

    @property
    def rows(self) -> int:
        """The number of rows in the first batch."""
        return self.batch or rows_of(self.samples[0])

    def batches(self, mode: FakeTensors, window: int) -> tuple[list[Any], int]:
        """Return fake batches, and the number of epochs over them that contain two updates of ``window`` batches each.

        The batches have the shapes of the first ``2 * window`` samples; a single sample is repeated ``window`` times.
        """
        if len(self.samples) == 1:
            return [self._fake(mode, self.samples[0], first=i == 0) for i in range(window)], 2
        samples = self.samples[: 2 * window]
        return [self._fake(mode, sample, first=True) for sample in samples], 1 if len(samples) == 2 * window else 2

    def _fake(self, mode: FakeTensors, sample: Any, *, first: bool) -> Any:
        rows = rows_of(sample)

        def fake(tensor: Tensor) -> Tensor:
            if self.batch is None and first:
                return mode.fake(tensor)
            shape = tuple(tensor.shape)
            if self.batch is not None and shape and shape[0] == rows:
                shape = (self.batch, *shape[1:])
            with mode:
                return torch.empty(shape, dtype=tensor.dtype)

        return map_tensors(fake, sample)


def tensors_in(value: Any) -> list[Tensor]:
    """Return a list of the tensors in ``value``, which may be a tensor or nested lists, tuples and dicts."""
    tensors: list[Tensor] = []
    map_tensors(tensors.append, value)
    return tensors


def rows_of(sample: Any) -> int:
    """Return the length of the first tensor in ``sample`` that has dimensions, or 1 if no tensor has any."""
    return next((len(tensor) for tensor in tensors_in(sample) if tensor.ndim), 1)


def map_tensors(change: Callable[[Tensor], Any], value: Any) -> Any:
    """Return ``value`` with ``change`` applied to each tensor in it, in new lists, tuples and dicts."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Mapping):  # batches of the transformers library are mappings, but no dicts
        return {key: map_tensors(change, each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        changed = [map_tensors(change, each) for each in value]
        return tuple(changed) if isinstance(value, tuple) else changed
    return value


def as_movable(batch: Any) -> Any:
    """Return ``batch`` in a form in which every part has a method ``to(device)`` for the training loop to call."""

    def movable(part: Any) -> Any:
        # a nested part contains only fake tensors, which need not be moved: its ``to`` returns the part unchanged
        return part if isinstance(part, Tensor) else SimpleNamespace(to=lambda device: part)

    if isinstance(batch, dict):
        return {name: movable(part) for name, part in batch.items()}
    return tuple(map(movable, batch)) if isinstance(batch, (list, tuple)) else batch


def as_workload(what: Any, batch: Any, context: Any, loss_fn: Any) -> Workload:
    """Return a Workload for these arguments of ``forecast``. Raises TypeError or ValueError for an invalid argument."""
    if loss_fn is not None and isinstance(what, (str, tasks.Task)):
        raise ValueError(f"forecast: a size or a task has its own loss, got loss_fn={loss_fn!r}; leave it out")
    if isinstance(what, str) and what in model_sizes():
        return _of_size(model_size(what), batch, context)
    if isinstance(what, str):
        names = [*model_sizes(), *tasks.names()]
        if what not in names:
            raise ValueError(
                f"forecast: there is no size or task {what!r}{did_you_mean(what, names)}; "
                "`gradlab forecast --help` lists the names"
            )
        what = tasks.get(what, device="cpu")
    if context is not None:
        raise ValueError(
            f"forecast: context is for published sizes such as 'llama-8b', got context={context!r}; "
            "for a task or a module, the samples determine the context"
        )
    if isinstance(what, tasks.Task):
        return _of_task(what, batch)
    if isinstance(what, nn.Module):
        return _of_module(what, batch, loss_fn)
    raise TypeError(
        "forecast: what must be a Task, a task's name, a torch.nn.Module with batch=(x, y), or a published size such "
        f"as 'llama-8b', got {what!r}"
    )


def _of_size(size: ModelSize, batch: Any, context: Any) -> Workload:
    rows = whole_number("forecast: batch", 1 if batch is None else batch, 1, LARGEST_BATCH)
    context = min(2048, size.max_context) if context is None else context
    length = whole_number(f"forecast: context of {size.name!r}", context, 1, size.max_context)
    tokens = torch.empty(rows, length, dtype=torch.int64, device="meta")
    build = partial(_build_decoder, size=size)
    return Workload(size.name, build, [(tokens, tokens)], next_token_loss, "cuda", rows, size)


def _build_decoder(mode: FakeTensors, size: ModelSize) -> nn.Module:
    with mode:
        return Decoder(size)


def _of_task(task: tasks.Task, batch: Any) -> Workload:
    rows = None if batch is None else whole_number("forecast: batch of a task", batch, 1, LARGEST_BATCH)

    def build(mode: FakeTensors) -> nn.Module:
        with mode:  # a fake model cannot be moved, so it is built on the CPU
            return dataclasses.replace(task, device="cpu").build(0)

    workload = Workload(task.name, build, list(task.batches), task.loss_fn, task.device)
    return workload if rows is None else workload.resized(rows)


def _of_module(module: nn.Module, batch: Any, loss_fn: Any) -> Workload:
    sample = _checked_sample(batch)
    if not all(t.numel() and (t.ndim or len(tensors_in(sample)) > 2) for t in tensors_in(sample)):
        raise ValueError(f"forecast: tensors in batch must have at least one row of data, got {without_values(batch)}")
    if loss_fn is not None and not callable(loss_fn):
        raise TypeError(f"forecast: loss_fn must be a function (output, y) -> loss, got {loss_fn!r}")
    require_trainable("forecast", type(module).__name__, [module], "run model(x) once before you forecast the model")
    if any(getattr(parameter, "_post_accumulate_grad_hooks", None) for parameter in module.parameters()):
        raise ValueError(
            f"forecast: a parameter of {type(module).__name__} has a hook that runs in backward and may step your own "
            "optimizer (register_post_accumulate_grad_hook). Forecast the model without that hook"
        )
    eager = getattr(module, "_orig_mod", module)
    name, build = type(eager).__name__, partial(_eager_copy, model=eager)
    return Workload(name, build, [sample], loss_fn or default_loss, "cuda", reader_model=module)


def _eager_copy(mode: FakeTensors, model: nn.Module) -> nn.Module:
    """Return a copy of ``model`` that has fake tensors, and in which no submodule is compiled."""
    twin = mode.copy(model)
    for module in list(twin.modules()):
        for name, child in module.named_children():
            module._modules[name] = getattr(child, "_orig_mod", child)
    return twin


def _checked_sample(batch: Any) -> Any:
    """Return ``batch`` with plain dicts, tuples and lists. Raises TypeError if it is neither (x, y) nor one dict."""
    is_pair = isinstance(batch, (tuple, list)) and len(batch) == 2 and all(tensors_in(each) for each in batch)
    if is_pair or (isinstance(batch, Mapping) and tensors_in(batch)):
        return map_tensors(lambda tensor: tensor, batch)
    raise TypeError(
        "forecast: a module needs a sample batch (x, y) of tensors, or of dicts, tuples or lists of tensors, or one "
        f"dict for a model that computes its own loss; got batch={without_values(batch)}"
    )


def default_loss(output: Any, y: Any) -> Tensor:
    """Return the loss in ``output`` or, if there is none, the mean squared error or (for integer y) the cross-entropy.

    The classes of the cross-entropy are the last dimension of ``output`` if the other dimensions are those of ``y``,
    and the second dimension otherwise. Without a loss, ``output`` and ``y`` must be tensors, or TypeError is raised.
    """
    loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(loss, Tensor):
        return loss
    if not isinstance(output, Tensor) or not isinstance(y, Tensor):
        raise TypeError(
            f"the model returns {type(output).__name__} and y is {type(y).__name__}, which have no default loss: "
            "pass loss_fn=, a function (output, y) -> loss"
        )
    if y.is_floating_point():
        return nn.functional.mse_loss(output, y)
    if output.shape[:-1] == y.shape:
        return nn.functional.cross_entropy(output.flatten(0, -2), y.flatten())
    return nn.functional.cross_entropy(output, y)
