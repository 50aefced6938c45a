"""Which storages autograd's graph keeps for backward, seen where PyTorch lets one see it, in the pack hook.

What is packed is the tensor itself, so nothing is copied and backward computes what it would have computed. A hook
switches off PyTorch's own check that a saved tensor was not modified in place, so ``_unpack`` makes that check.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from .. import _torch
from .storages import StorageEntry, Storages, iter_tensors


class _SavedTensor:
    """A tensor in the hands of the graph; when the graph lets go of it, the storages hear of it."""

    __slots__ = ("entries", "tensor", "version")

    def __init__(self, tensor: Tensor, storages: Storages) -> None:
        # An output saved by its own node must not hold on to that node: the two would keep each other for ever.
        self.tensor = tensor if tensor.grad_fn is None else tensor.detach()
        self.version = tensor._version
        self.entries: list[StorageEntry] = storages.track(tensor)
        for entry in self.entries:
            entry.save()

    def __del__(self) -> None:
        for entry in getattr(self, "entries", ()):
            entry.save(-1)


def _unpack(saved: _SavedTensor) -> Tensor:
    now = saved.tensor._version
    if now != saved.version:  # the words are PyTorch's own, so that a search finds its explanations
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{saved.tensor.type()} {list(saved.tensor.shape)}] is at version {now}; expected version {saved.version} "
            "instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True)."
        )
    return saved.tensor


@contextmanager
def tracking_saved_tensors(storages: Storages) -> Iterator[None]:
    """Tell ``storages`` what the graph saves and lets go of, in this thread; hooks of others keep working.

    PyTorch calls only the hooks on top of the stack. So what others put on top (checkpointing, ``save_on_cpu``, a
    second ledger) is wrapped to see what it keeps, and ours step aside for ``torch.func``, which allows none.
    """
    own = _BottomHooks(storages)
    own.install()
    try:
        yield
    finally:
        own.remove()


class _BottomHooks:
    """Our pack and unpack hooks at the bottom of this thread's stack, and a watch on what comes on top."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._hooks = saved_tensors_hooks(lambda tensor: _SavedTensor(tensor, storages), _unpack)
        self._enter, self._exit = saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__
        self._disable, self._enable = _AUTOGRAD._saved_tensors_hooks_disable, _AUTOGRAD._saved_tensors_hooks_enable
        self._thread = threading.get_ident()
        self._above = 0  # hooks of others on top of ours
        self._suspended = False

    def install(self) -> None:
        self._enter(self._hooks)
        own = self

        def entered(hooks: saved_tensors_hooks) -> None:
            pack = hooks.pack_hook
            hooks.pack_hook = _watched(pack, own._storages)
            try:
                own._enter(hooks)
            finally:
                hooks.pack_hook = pack
            own._above += own._on_own_thread()

        def left(hooks: saved_tensors_hooks, *error: object) -> None:
            own._above -= own._on_own_thread()
            own._exit(hooks, *error)

        saved_tensors_hooks.__enter__ = entered  # type: ignore[method-assign]
        saved_tensors_hooks.__exit__ = left  # type: ignore[method-assign]
        _AUTOGRAD._saved_tensors_hooks_disable = self._disabled
        _AUTOGRAD._saved_tensors_hooks_enable = self._enabled

    def remove(self) -> None:
        saved_tensors_hooks.__enter__ = self._enter  # type: ignore[method-assign]
        saved_tensors_hooks.__exit__ = self._exit  # type: ignore[method-assign]
        _AUTOGRAD._saved_tensors_hooks_disable = self._disable
        _AUTOGRAD._saved_tensors_hooks_enable = self._enable
        if not self._suspended:
            self._exit(self._hooks)

    def _on_own_thread(self) -> bool:
        return threading.get_ident() == self._thread

    def _disabled(self, *message: Any) -> None:
        if self._on_own_thread() and not self._above and not self._suspended:
            self._exit(self._hooks)
            self._suspended = True
        self._disable(*message)

    def _enabled(self) -> None:
        self._enable()
        if self._on_own_thread() and self._suspended:
            self._enter(self._hooks)
            self._suspended = False


_AUTOGRAD: Any = _torch.place("saved_tensors_hooks_disable")[0]


def _watched(pack: Callable[[Tensor], Any], storages: Storages) -> Callable[[Tensor], Any]:
    """Wrap somebody's pack hook: a storage that it keeps, or a copy that it makes, counts as saved until it dies."""

    def watched(tensor: Tensor) -> Any:
        before = _uses(tensor)
        try:
            packed = pack(tensor)
        finally:  # checkpointing ends its second forward with an error, once it has the last tensor that it wants
            if _uses(tensor) > before:
                _keep(tensor, storages)
        for kept in iter_tensors(packed):
            _keep(kept, storages)
        return packed

    return watched


def _keep(tensor: Tensor, storages: Storages) -> None:
    for entry in storages.track(tensor):
        if not entry.saved:
            entry.save()


def _uses(tensor: Tensor) -> int:
    return int(_torch.storage_use_count(tensor.untyped_storage()._cdata)) if _torch.has_storage(tensor) else 0
