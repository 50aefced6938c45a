"""Tracking, with saved-tensor hooks, of the storages that autograd's graph saves for backward.

The pack hook returns an object that refers to the tensor, so nothing is copied and backward computes the same result.
With hooks, PyTorch does not detect that a saved tensor was modified in place, so ``unpack`` checks for this.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from .. import _torch
from .._process import Patches
from .storages import StorageRecord, Storages, iter_tensors
from .timeline import ACTIVATIONS, INPUTS, OTHER

_BY_THREAD: dict[int, _Hooks] = {}


class SavedTensor:
    """The object that a graph keeps for a saved tensor, which counts as saved until the graph releases this object."""

    __slots__ = ("entries", "tensor", "version")

    def __init__(self, tensor: Tensor, watching: Iterable[Storages]) -> None:
        """Count ``tensor`` as saved for backward in each ledger of ``watching``."""
        computed = tensor.grad_fn is not None
        # An output saved by its own node must not refer to that node, or the two would never be freed.
        self.tensor = tensor.detach() if computed else tensor
        self.version = tensor._version
        self.entries: list[StorageRecord] = [entry for storages in watching for entry in storages.track(tensor)]
        for entry in self.entries:
            entry.save()
            entry.computed |= computed

    def watch_too(self, storages: Storages) -> None:
        """Count the tensor as saved in ``storages`` too: as a batch if another ledger does that, else as computed."""
        batch = any(entry.base == INPUTS for entry in self.entries)
        for entry in storages.track(self.tensor):
            entry.save()
            self.entries.append(entry)
            if batch and entry.base == OTHER:
                entry.set_category(INPUTS, retroactive=True)
            entry.computed |= not batch

    def __del__(self) -> None:
        for entry in getattr(self, "entries", ()):
            entry.save(-1)


def unpack(saved: SavedTensor) -> Tensor:
    """Return the tensor that was saved. Raises RuntimeError if the tensor was modified in place after it was saved."""
    now = saved.tensor._version
    if now != saved.version:  # the message is PyTorch's own, so that a search finds explanations
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{saved.tensor.type()} {list(saved.tensor.shape)}] is at version {now}; expected version {saved.version} "
            "instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True)."
        )
    return saved.tensor


@contextmanager
def tracking_saved_tensors(storages: Storages) -> Iterator[None]:
    """Within a ``with`` block, count in ``storages`` the tensors that graphs save for backward on this thread.

    PyTorch calls only the hooks on top of the stack, so all ledgers of a thread share one pair of hooks. Other hooks
    above this pair, such as those of checkpointing and ``save_on_cpu``, keep working; they are wrapped to track the
    tensors that they keep. The pair is removed for ``torch.func``, which allows no saved-tensor hooks.
    """
    with _WATCHING_HOOKS:
        thread = threading.get_ident()
        hooks = _BY_THREAD.get(thread) or _Hooks()
        if not hooks.watching:
            hooks.push()
            _BY_THREAD[thread] = hooks
        hooks.watching.append(storages)
        try:
            yield
        finally:
            hooks.watching.remove(storages)
            if not hooks.watching:
                _BY_THREAD.pop(thread, None)
                hooks.remove()


class _Hooks:
    """The pair of pack and unpack hooks that all ledgers of a thread share, and a wrapper for hooks above the pair."""

    def __init__(self) -> None:
        self.watching: list[Storages] = []
        self.pair: tuple[Any, Any] | None = None  # the pair that is on the stack, or None while it is removed

    def push(self) -> None:
        below = _top()
        hooks = (self._pack, unpack) if below is None else (self.watched(below[0]), below[1])
        _torch.push_saved_tensors_hooks(*hooks)
        self.pair = hooks

    def remove(self) -> None:
        """Remove the pair of hooks from the stack, even if other hooks are above it."""
        above: list[tuple[Any, Any]] = []
        while (top := _top()) is not None and not self.on_top():
            above.append(top)
            _torch.pop_saved_tensors_hooks()
        if top is not None:
            _torch.pop_saved_tensors_hooks()
        self.pair = None
        for hooks in reversed(above):
            _torch.push_saved_tensors_hooks(*hooks)

    def on_top(self) -> bool:
        top = _top()
        return top is not None and self.pair is not None and top[0] is self.pair[0]

    def _pack(self, tensor: Tensor) -> SavedTensor:
        return SavedTensor(tensor, self.watching)

    def watched(self, pack: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
        """Wrap another pack hook, so that the storages it keeps, originals or copies, count as saved until freed."""

        def watched(tensor: Tensor) -> Any:
            before = _uses(tensor)
            try:
                packed = pack(tensor)
            finally:  # checkpointing ends its recomputation with an exception once it has the last tensor it needs
                if _uses(tensor) > before:
                    self._keep(tensor)
            for part in iter_tensors(packed):
                self._keep(part)
            return packed

        return watched

    def _keep(self, tensor: Tensor) -> None:
        for storages in self.watching:
            for entry in storages.track(tensor):
                if not entry.saved:
                    entry.save()


def _top() -> tuple[Any, Any] | None:
    hooks: tuple[Any, Any] | None = _torch.top_saved_tensors_hooks(True)
    return hooks


def _uses(tensor: Tensor) -> int:
    return int(_torch.storage_use_count(tensor.untyped_storage()._cdata)) if _torch.has_storage(tensor) else 0


def _hooks_of_thread() -> _Hooks | None:
    return _BY_THREAD.get(threading.get_ident())


def _remove_from_top() -> _Hooks | None:
    """Remove this thread's pair of hooks if it is on top of the stack, and return its ``_Hooks``, or None otherwise."""
    hooks = _hooks_of_thread()
    if hooks is None or not hooks.on_top():
        return None
    hooks.remove()
    return hooks


def _counting(get_rng_state: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """Wrap ``torch.get_rng_state`` to track its result, which checkpointing keeps but the dispatch mode misses."""

    def counted() -> Tensor:
        state, hooks = get_rng_state(), _hooks_of_thread()
        for storages in hooks.watching if hooks else ():
            storages.track(state)
        return state

    return counted


def _entering(enter: Callable[[saved_tensors_hooks], None]) -> Callable[[saved_tensors_hooks], None]:
    def entered(hooks: saved_tensors_hooks) -> None:
        thread_hooks, pack = _hooks_of_thread(), hooks.pack_hook
        hooks.pack_hook = thread_hooks.watched(pack) if thread_hooks else pack
        try:
            enter(hooks)
        finally:
            hooks.pack_hook = pack

    return entered


def _leaving(leave: Callable[..., None]) -> Callable[..., None]:
    def left(hooks: saved_tensors_hooks, *error: object) -> None:
        aside = _remove_from_top()  # otherwise PyTorch would pop our pair instead of ``hooks``, which are below it
        leave(hooks, *error)
        if aside:
            aside.push()

    return left


def _disabling(disable: Callable[..., None]) -> Callable[..., None]:
    def disabled(*message: Any) -> None:
        aside = _remove_from_top()
        try:
            disable(*message)
        except RuntimeError:  # other hooks are active below our pair
            if aside:
                aside.push()
            raise

    return disabled


def _enabling(enable: Callable[[], None]) -> Callable[[], None]:
    def enabled() -> None:
        enable()
        if (hooks := _hooks_of_thread()) and hooks.pair is None:
            hooks.push()

    return enabled


_AUTOGRAD: Any = _torch.locate("saved_tensors_hooks_disable")[0]
_WATCHING_HOOKS = Patches(
    (saved_tensors_hooks, "__enter__", _entering),
    (saved_tensors_hooks, "__exit__", _leaving),
    (_AUTOGRAD, "_saved_tensors_hooks_disable", _disabling),
    (_AUTOGRAD, "_saved_tensors_hooks_enable", _enabling),
    (torch, "get_rng_state", _counting),
)


def find_saved(nodes: Iterable[Any], storages: Storages, wanted: Callable[[Tensor], bool]) -> None:
    """Count in ``storages`` the tensors saved in the graphs of ``nodes`` for which ``wanted`` returns True.

    The graphs may be older than the ledger, so hooks are added to their saved tensors now; this keeps no graph alive.
    A storage that other hooks keep counts as an activation until it is freed. The caller must have tracked all tensors
    with a Python object: a tensor that only a graph holds, such as a dropout mask, must not count as a batch.
    """
    entries: list[StorageRecord] = []
    for saved, tensor in _saved_by(nodes):
        if tensor is not None:
            if wanted(tensor):
                saved.register_hooks(lambda part: SavedTensor(part, [storages]), unpack)  # this calls the pack hook
                for entry in saved.data.entries:  # a packed output has no grad_fn, but ``tensor`` still has it
                    entry.computed |= tensor.grad_fn is not None
                entries += saved.data.entries
        elif isinstance(saved.data, SavedTensor):  # packed by another ledger
            if wanted(saved.data.tensor):
                saved.data.watch_too(storages)
        else:
            for entry in (entry for part in filter(wanted, iter_tensors(saved.data)) for entry in storages.track(part)):
                if entry.base == OTHER:
                    entry.set_category(ACTIVATIONS)
    for entry in entries:
        entry.computed |= not entry.preexisting
        if entry.base == OTHER and not entry.computed:
            entry.set_category(INPUTS, retroactive=True)


def _saved_by(nodes: Iterable[Any]) -> Iterator[tuple[Any, Tensor | None]]:
    """Yield each raw saved tensor in the graphs of ``nodes`` with its tensor, or with None if hooks have packed it."""
    hook = _torch.saved_unpack_hook
    if hook is None:
        return
    for node in graph_nodes(nodes):
        for name in [name for name in dir(node) if name.startswith("_raw_saved_")]:
            plain = name.removeprefix("_raw")  # the tensor's attribute; a custom Function has ``saved_tensors`` instead
            try:
                saved = _tuple(getattr(node, name))
                if any(hook.__get__(raw) is not None for raw in saved):
                    tensors: tuple[Tensor | None, ...] = (None,) * len(saved)
                else:
                    tensors = _tuple(getattr(node, plain) if hasattr(type(node), plain) else node.saved_tensors)
            except RuntimeError:  # the tensor was freed, or modified in place: backward would fail, too
                continue
            for raw, tensor in zip(saved, tensors, strict=True):
                if raw is not None and (tensor is not None or hook.__get__(raw) is not None):
                    yield raw, tensor


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def graph_nodes(roots: Iterable[Any]) -> list[Any]:
    """Return ``roots`` and the autograd nodes reachable from them, each after all nodes that pass it a gradient."""
    ordered: list[Any] = []
    visited: set[Any] = set()
    stack = [(root, False) for root in roots]
    while stack:  # a stack is used because 1,000 operations in a row make a graph too deep for recursion
        node, finished = stack.pop()
        if finished:
            ordered.append(node)
        elif node is not None and node not in visited:
            visited.add(node)
            stack += [(node, True), *((target, False) for target, _ in reversed(node.next_functions))]
    return ordered[::-1]
