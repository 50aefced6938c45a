"""Bytes and kernels of getting a fresh gradient into ``.grad``: counted in a profile, beside the arithmetic.

A fresh gradient gets there in one of four ways. ``optimizer.zero_grad(set_to_none=False)`` fills ``.grad`` with zeros
("zero-fill"), and backward then adds to them ("add"). After ``set_to_none=True`` there is nothing to add to: autograd
makes the tensor it has just computed the new ``.grad`` ("hand-over"), or, where that tensor is not its own to give, a
copy of it ("assign"). The rules are those of ``accumulate_grad.h`` in PyTorch's sources.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

WAYS = ("zero-fill", "add", "assign", "hand-over")

_ACCUMULATE, _FOREACH = "torch::autograd::AccumulateGrad", "aten::_foreach_zero_"
# Operations that move bytes, with the inputs that they read; each of them writes its first.
_MOVES = {"aten::zero_": (), "aten::add_": (0, 1), "aten::copy_": (1,)}
_ARITHMETIC = {"zero-fill": 1, "add": 3, "assign": 2, "hand-over": 0}  # reads + writes of each element
_SIZES = {"float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2}  # bytes an element, by a profile's names
# Making a tensor, or another view of one, moves no element.
_STILL = ("aten::detach", "aten::detach_", "aten::empty", "aten::new_empty", "aten::as_strided", "aten::resolve")


@dataclass(frozen=True)
class TrafficRow:
    """What one way costs per update, over all parameters that get a gradient."""

    way: str
    kernels: int
    """On CUDA kernels launched; on a CPU the operations that touch elements, one for each kernel a GPU would launch."""
    read: int
    """Bytes read, from the profile: shapes times element size, each operand once, caches left out."""
    written: int
    """Bytes written, counted in the same way."""
    arithmetic: int
    """Bytes by hand: parameters x element size x (reads + writes) of this way."""
    copied: int = 0
    """In "hand-over": gradients that autograd could not hand over and copied instead."""

    @property
    def moved(self) -> int:
        """Bytes read and written together."""
        return self.read + self.written


@dataclass(frozen=True)
class Traffic:
    """The rows, one a way; ``traffic["add"]`` is one of them, and the text is a table."""

    rows: tuple[TrafficRow, ...]
    gradients: int
    """Parameters that got a gradient."""
    device: str

    def __iter__(self) -> Iterator[TrafficRow]:
        return iter(self.rows)

    def __getitem__(self, way: str) -> TrafficRow:
        for row in self.rows:
            if row.way == way:
                return row
        raise KeyError(f"way must be one of {', '.join(repr(row.way) for row in self.rows)}, got {way!r}")

    def __repr__(self) -> str:
        lines = [f"{'way':10} {'kernels':>8} {'bytes read':>15} {'bytes written':>15} {'by arithmetic':>15}"]
        lines += [f"{r.way:10} {r.kernels:8,} {r.read:15,} {r.written:15,} {r.arithmetic:15,}" for r in self.rows]
        copied = sum(row.copied for row in self.rows)
        if copied:
            lines.append(
                f"hand-over: autograd could not hand over {copied} of {self.gradients} gradients; it copied them"
            )
        if self.device == "cpu":
            lines.append("(a CPU launches no kernels: operations on tensors are counted)")
        return "\n".join(lines)


def traffic(
    model: nn.Module, loss: Callable[[], Tensor], ways: Sequence[str] = WAYS, foreach: bool | None = None
) -> Traffic:
    """Count what each way of getting a fresh gradient into ``.grad`` reads, writes and launches per update.

    ``loss`` takes nothing and returns the loss of one batch, with its graph: ``lambda: loss_fn(model(x), y)``. It is
    called once for each way and twice to warm up. ``foreach`` is that of the optimizer whose ``zero_grad`` is profiled.
    Only clearing and accumulation are counted, not what computes the gradient. Weights, ``.grad``, buffers and the
    random numbers are left as they were. Raises TypeError or ValueError that names the argument and what is allowed.
    """
    parameters = _checked(model, loss, ways, foreach)
    cuda = [p.device for p in parameters if p.device.type == "cuda"]
    with _unchanged(model, parameters, {device.index or 0 for device in cuda}):
        optimizer = torch.optim.SGD(parameters, lr=0.0, foreach=foreach)
        _warm_up(optimizer, loss, parameters)
        fresh = [p.grad for p in parameters if p.grad is not None]
        size = sum(grad.numel() * grad.element_size() for grad in fresh)
        rows = []
        for way in ways:
            operations = list(_operations(way, optimizer, loss, parameters, bool(cuda)))
            copied = sum(event.name == "aten::copy_" for event, _ in operations) if way == "hand-over" else 0
            moves = [bytes_moved(event, types, size) for event, types in operations]
            kernels = sum(count_kernels(event) for event, _ in operations) if cuda else len(operations)
            read, written = (sum(column) for column in zip((0, 0), *moves, strict=True))
            rows.append(TrafficRow(way, kernels, read, written, size * _ARITHMETIC[way], copied))
    return Traffic(tuple(rows), len(fresh), "cuda" if cuda else "cpu")


def _checked(model: Any, loss: Any, ways: Any, foreach: Any) -> list[nn.Parameter]:
    if not isinstance(model, nn.Module):
        raise TypeError(f"traffic: model must be an nn.Module, got {model!r}")
    if not callable(loss):
        raise TypeError(f"traffic: loss must be a function without arguments that returns the loss, got {loss!r}")
    if isinstance(ways, str) or not isinstance(ways, Sequence) or not ways or not set(ways) <= set(WAYS):
        raise ValueError(f"traffic: ways must be a list out of {', '.join(map(repr, WAYS))}, got {ways!r}")
    if foreach not in (None, True, False):
        raise ValueError(f"traffic: foreach must be True, False or None, got {foreach!r}")
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("traffic: model must have a parameter that requires a gradient, got none")
    return parameters


@contextmanager
def _unchanged(model: nn.Module, parameters: Iterable[nn.Parameter], gpus: Iterable[int]) -> Iterator[None]:
    """Give back ``.grad``, buffers (those of BatchNorm move in forward) and random numbers as they were."""
    grads = [(p, p.grad) for p in parameters]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    for p, _ in grads:
        p.grad = None
    try:
        with torch.random.fork_rng(devices=list(gpus)), torch.enable_grad():
            yield
    finally:
        for p, grad in grads:
            p.grad = grad
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


def _warm_up(optimizer: torch.optim.Optimizer, loss: Callable[[], Tensor], parameters: list[nn.Parameter]) -> None:
    """Run backward and a clearing unprofiled, so that what is set up once is not counted, and check what comes."""
    for _ in range(2):
        optimizer.zero_grad(set_to_none=False)
        value = loss()
        if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
            raise ValueError(f"traffic: loss must return a tensor with one value and a graph behind it, got {value!r}")
        value.backward()
    if all(p.grad is None for p in parameters):
        raise ValueError("traffic: loss must depend on the model's parameters, but none of them got a gradient")
    for p in parameters:
        if p.grad is not None and p.grad.layout is not torch.strided:
            raise ValueError(f"traffic: gradients must be dense, got one of layout {p.grad.layout}")


def _operations(
    way: str, optimizer: torch.optim.Optimizer, loss: Callable[[], Tensor], parameters: list[nn.Parameter], cuda: bool
) -> Iterator[tuple[Any, Sequence[str]]]:
    """Go this way under the profiler; yield each operation that moves bytes, with the types of its inputs."""
    kept: list[Tensor] = []  # who keeps a gradient makes autograd copy it: it may not hand over what another holds
    handles = [p.register_hook(kept.append) for p in parameters] if way == "assign" else []
    optimizer.zero_grad(set_to_none=way in ("assign", "hand-over"))
    value = None if way == "zero-fill" else loss()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    # torch 2.13's profiler says "USDT: ... profiler_start" on stderr unless its level is above all levels at first use.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    try:
        # acc_events changes nothing here, with one cycle; without it torch 2.11 warns that it matters for more.
        with profile(activities=activities, record_shapes=True, acc_events=True) as profiled:
            if value is None:
                optimizer.zero_grad(set_to_none=False)
            else:
                value.backward()
    finally:
        for handle in handles:
            handle.remove()
    types = {event.correlation_id(): event.dtypes() for event in profiled.profiler.kineto_results.events()}
    for event in profiled.events() or ():
        if event.name == _ACCUMULATE if value is not None else event.cpu_parent is None:
            yield from ((below, types.get(below.id, ())) for below in find_moves(event))


def find_moves(event: Any) -> list[Any]:
    """Return the outermost operations at or below an event that move bytes; refuse those that nobody foresaw."""
    if event.name in _MOVES:
        return [event]
    if event.name.startswith("aten::") and not event.name.startswith((_FOREACH, *_STILL)):
        raise ValueError(
            f"traffic: backward ran {event.name} on a gradient as it was put into .grad; "
            "take hooks off the parameters (register_post_accumulate_grad_hook) and try again"
        )
    found = [operation for child in event.cpu_children for operation in find_moves(child)]
    # Many tensors at once: a CPU goes on one by one, and has them below; CUDA has a kernel for all.
    return found or [event] if event.name == _FOREACH else found


def bytes_moved(event: Any, types: Sequence[str], everything: int) -> tuple[int, int]:
    """Return the bytes that an operation reads and writes."""
    if event.name not in _MOVES:  # _foreach_zero_ at one go: a profile has no shapes for a list, but it is all of .grad
        return 0, everything

    def size(place: int) -> int:
        if types[place] not in _SIZES:
            raise ValueError(f"traffic: gradients must be of a type out of {', '.join(_SIZES)}, got {types[place]}")
        return math.prod(event.input_shapes[place]) * _SIZES[types[place]]

    return sum(map(size, _MOVES[event.name])), size(0)


def count_kernels(event: Any) -> int:
    """Return how many kernels (copies and fills by the driver among them) an operation launched."""
    return len(event.kernels) + sum(count_kernels(child) for child in event.cpu_children)
