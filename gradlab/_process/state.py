"""State of PyTorch that belongs to the process or to a thread, models and optimizers: how to put it back."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from .. import _torch
from .._frames import Owner, code_owner

if TYPE_CHECKING:
    import torch
    from torch import nn


def copy_state(things: Iterable[Any]) -> Callable[[], None]:
    """Copy the state of models, tensors, optimizers and whatever else has a ``state_dict``; return what puts it back.

    Of a model: its parts, weights, buffers, ``.grad``, and what trains. It may be put back any number of times.
    """
    import torch
    from torch import Tensor, nn

    given = {id(one): one for one in things}.values()
    modules = [part for one in given if isinstance(one, nn.Module) for part in one.modules()]
    owned: list[tuple[nn.Module, bool, list[dict[str, Any]]]] = [
        (part, part.training, [dict(of) for of in (part._modules, part._parameters, part._buffers)]) for part in modules
    ]
    tensors = {id(t): t for part in modules for t in (*part.parameters(), *part.buffers())}
    tensors |= {id(one): one for one in given if isinstance(one, Tensor) and one.is_leaf}
    values = [(t, t.detach().clone(), t.requires_grad, _copy_grad(t.grad)) for t in tensors.values()]
    stateful = [one for one in given if not isinstance(one, (nn.Module, type)) and hasattr(one, "load_state_dict")]
    states = [(one, copy.deepcopy(one.state_dict())) for one in stateful]
    groups = [
        (one, [dict(group) for group in one.param_groups]) for one in stateful if isinstance(one, torch.optim.Optimizer)
    ]

    def put_back() -> None:
        for part, training, before in owned:
            part.training = training
            held: tuple[Any, ...] = (part._modules, part._parameters, part._buffers)
            for now, then in zip(held, before, strict=True):
                now.clear()
                now.update(then)
        with torch.no_grad():
            for tensor, value, requires_grad, grad in values:
                tensor.data = tensor.data if tensor.shape == value.shape else value.clone()
                if not torch.equal(tensor, value):  # nothing is written where nothing has changed
                    tensor.copy_(value)
                if tensor.requires_grad != requires_grad:
                    tensor.requires_grad = requires_grad
                tensor.grad = _copy_grad(grad)
        for one, kept in groups:
            one.param_groups[:] = [dict(group) for group in kept]
        for one, state in states:
            one.load_state_dict(copy.deepcopy(state))

    return put_back


def _copy_grad(grad: torch.Tensor | None) -> torch.Tensor | None:
    return None if grad is None else grad.detach().clone()


_DEVICES = ("cpu", "cuda")


@contextmanager
def preserving_torch_state() -> Iterator[None]:
    """Go in with grad mode on, and put back afterwards what is a matter of the whole kernel.

    That is: modes, autocast, default dtype and device, hooks on all modules and optimizers, Python's recursion limit.
    """
    import torch

    limit, cast, nesting = sys.getrecursionlimit(), _autocast(), _autocast_nesting()
    try:
        with KernelSettings(), torch.inference_mode(False):  # it puts grad mode and inference mode back
            yield
    finally:
        sys.setrecursionlimit(limit)
        if _autocast() != cast:
            for name, (on, kind) in cast.items():
                torch.set_autocast_enabled(name, on)
                torch.set_autocast_dtype(name, kind)
        if _autocast_nesting() != nesting:  # a region that was never left: its casts would be used for ever
            torch.clear_autocast_cache()
            while _autocast_nesting() > nesting:
                torch.autocast_decrement_nesting()
            while _autocast_nesting() < nesting:
                torch.autocast_increment_nesting()


class KernelSettings:
    """Keeps to a loop what it sets for the whole kernel: inside of ``with`` it is set, outside it is not.

    That is the default dtype and device, and hooks on all modules and optimizers.
    """

    def __init__(self) -> None:
        self._defaults: dict[int, Any] = {}  # those that the loop has set, by their place
        self._hooks: list[dict[int, Any]] = []

    def __enter__(self) -> None:
        self._outside, self._hooks_outside = _defaults(), {number for hooks in _global_hooks() for number in hooks}
        self._inside = [self._defaults.get(index, value) for index, value in enumerate(self._outside)]
        _set_defaults(self._outside, self._inside)
        for hooks, added in zip(_global_hooks(), self._hooks, strict=False):
            hooks.update(added)

    def __exit__(self, *error: object) -> None:
        now = _defaults()
        self._defaults |= {index: value for index, value in enumerate(now) if value != self._inside[index]}
        self._hooks = _remove_hooks_since(self._hooks_outside)
        _set_defaults(now, self._outside)


def _defaults() -> list[Any]:
    """Return the default dtype, the default device, and the kind of backward hooks on all modules."""
    import torch

    module, name = _torch.place("is_full_backward_hook")
    return [torch.get_default_dtype(), torch.get_default_device(), getattr(module, name, None)]


def _set_defaults(now: list[Any], wanted: list[Any]) -> None:
    import torch

    dtype, device, is_full_backward_hook = wanted
    if now[0] != dtype:
        torch.set_default_dtype(dtype)
    if now[1] != device:
        torch.set_default_device(None if device == torch.device("cpu") else device)
    if now[2] != is_full_backward_hook:
        setattr(*_torch.place("is_full_backward_hook"), is_full_backward_hook)


@cache
def _global_hooks() -> list[dict[int, Any]]:
    """Return PyTorch's own dictionaries of the hooks on all modules and on all optimizers, by the number of a hook."""
    owners = [_torch.place(name)[0] for name in ("module_hooks", "optimizer_hooks")]
    names = [(name, value) for owner in owners if owner is not None for name, value in vars(owner).items()]
    return [value for name, value in names if name.startswith("_global_") and isinstance(value, dict)]


def _remove_hooks_since(before: set[int]) -> list[dict[int, Any]]:
    """Take off the hooks that have come since, and return them; gradlab's own, of another thread, stay."""
    every = _global_hooks()
    new = {
        number
        for hooks in every
        for number, hook in [*hooks.items()]
        if number not in before and callable(hook) and not _is_ours(hook)
    }
    return [{number: hooks.pop(number) for number in new & hooks.keys()} for hooks in every]


def _is_ours(hook: Any) -> bool:
    code = getattr(hook, "__code__", None)
    return code is not None and code_owner(code.co_filename) is Owner.OURS


def _autocast() -> dict[str, tuple[bool, torch.dtype]]:
    import torch

    return {name: (torch.is_autocast_enabled(name), torch.get_autocast_dtype(name)) for name in _DEVICES}


def _autocast_nesting() -> int:
    """Return in how many autocast regions this is; PyTorch tells it only to who enters or leaves one."""
    import torch

    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())


@contextmanager
def plain_torch_state() -> Iterator[None]:
    """Run a block with grad mode on and autocast off, whatever a cell has left the main thread in."""
    import torch

    with torch.inference_mode(mode=False):
        if not torch.is_autocast_enabled("cpu"):
            yield
            return
        with torch.autocast("cpu", enabled=False):
            yield
