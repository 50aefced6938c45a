"""Copies of the state of models and optimizers, and contexts that restore PyTorch's settings when they end."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from .. import _torch
from .._frames import Owner, code_owner


def copy_state(things: Iterable[Any]) -> Callable[[], None]:
    """Copy the state of models, leaf tensors and objects with a ``state_dict``; return a function that restores it.

    A model's state includes its submodules, ``.grad``, ``requires_grad`` and ``training``. The function may be reused.
    """
    unique = {id(thing): thing for thing in things}.values()
    modules = [part for thing in unique if isinstance(thing, nn.Module) for part in thing.modules()]
    owned: list[tuple[nn.Module, bool, list[dict[str, Any]]]] = [
        (part, part.training, [dict(of) for of in (part._modules, part._parameters, part._buffers)]) for part in modules
    ]
    tensors = {id(t): t for part in modules for t in (*part.parameters(), *part.buffers())}
    tensors |= {id(thing): thing for thing in unique if isinstance(thing, Tensor) and thing.is_leaf}
    values = [(t, t.detach().clone(), t.requires_grad, _copy_grad(t.grad)) for t in tensors.values()]
    stateful = [s for s in unique if not isinstance(s, (nn.Module, type)) and hasattr(s, "load_state_dict")]
    states = [(thing, copy.deepcopy(thing.state_dict())) for thing in stateful]
    optimizers = [thing for thing in stateful if isinstance(thing, torch.optim.Optimizer)]
    groups = [(optimizer, [dict(group) for group in optimizer.param_groups]) for optimizer in optimizers]

    def restore() -> None:
        for part, training, before in owned:
            part.training = training
            tables: tuple[Any, ...] = (part._modules, part._parameters, part._buffers)
            for now, then in zip(tables, before, strict=True):
                now.clear()
                now.update(then)
        with torch.no_grad():
            for tensor, value, requires_grad, grad in values:
                tensor.data = tensor.data if tensor.shape == value.shape else value.clone()
                if not torch.equal(tensor, value):  # unchanged tensors are not written to
                    tensor.copy_(value)
                if tensor.requires_grad != requires_grad:
                    tensor.requires_grad = requires_grad
                tensor.grad = _copy_grad(grad)
        for optimizer, group_copies in groups:
            optimizer.param_groups[:] = [dict(group) for group in group_copies]
        for thing, state in states:
            thing.load_state_dict(copy.deepcopy(state))

    return restore


def _copy_grad(grad: Tensor | None) -> Tensor | None:
    return None if grad is None else grad.detach().clone()


@contextmanager
def preserving_torch_state() -> Iterator[None]:
    """Run a block with grad mode on and inference mode off, and restore global settings afterwards.

    The settings are grad and inference mode, autocast, default dtype and device, global hooks, and the recursion limit.
    """
    limit, cast, nesting = sys.getrecursionlimit(), _autocast(), _autocast_nesting()
    try:
        with KernelSettings(), torch.inference_mode(False):  # inference_mode also turns grad mode on and restores it
            yield
    finally:
        sys.setrecursionlimit(limit)
        if _autocast() != cast:
            for name, (on, kind) in cast.items():
                torch.set_autocast_enabled(name, on)
                torch.set_autocast_dtype(name, kind)
        if _autocast_nesting() != nesting:  # an autocast region was not exited, so its cached casts would stay in use
            torch.clear_autocast_cache()
            while _autocast_nesting() > nesting:
                torch.autocast_decrement_nesting()
            while _autocast_nesting() < nesting:
                torch.autocast_increment_nesting()


class KernelSettings:
    """A loop's changes to the default dtype and device, and its global hooks on modules and optimizers.

    Both are in effect only in the ``with`` blocks of this object; a block starts with those of the earlier blocks.
    """

    def __init__(self) -> None:
        self._defaults: dict[int, Any] = {}  # the values that the loop has set, by index in _defaults()
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
    """Return the default dtype, the default device, and whether global backward hooks on modules are full hooks."""
    module, name = _torch.locate("is_full_backward_hook")
    return [torch.get_default_dtype(), torch.get_default_device(), getattr(module, name, None)]


def _set_defaults(now: list[Any], wanted: list[Any]) -> None:
    dtype, device, is_full_backward_hook = wanted
    if now[0] != dtype:
        torch.set_default_dtype(dtype)
    if now[1] != device:
        torch.set_default_device(None if device == torch.device("cpu") else device)
    if now[2] != is_full_backward_hook:
        setattr(*_torch.locate("is_full_backward_hook"), is_full_backward_hook)


@cache
def _global_hooks() -> list[dict[int, Any]]:
    """Return PyTorch's dictionaries of global module and optimizer hooks, each with hook ids as keys."""
    owners = [_torch.locate(name)[0] for name in ("module_hooks", "optimizer_hooks")]
    names = [(name, value) for owner in owners if owner is not None for name, value in vars(owner).items()]
    return [value for name, value in names if name.startswith("_global_") and isinstance(value, dict)]


def _remove_hooks_since(before: set[int]) -> list[dict[int, Any]]:
    """Remove and return the learner's global hooks whose ids are not in ``before``, in one dict per dict of PyTorch."""
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
    return {name: (torch.is_autocast_enabled(name), torch.get_autocast_dtype(name)) for name in ("cpu", "cuda")}


def _autocast_nesting() -> int:
    """Return the number of open autocast regions, which PyTorch reports only when a region is entered or exited."""
    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())


@contextmanager
def plain_torch_state() -> Iterator[None]:
    """Run a block with grad mode on, inference mode off and CPU autocast off, even if a cell has set them otherwise."""
    is_autocast = torch.is_autocast_enabled("cpu")
    with torch.inference_mode(mode=False), torch.autocast("cpu", enabled=False) if is_autocast else nullcontext():
        yield
