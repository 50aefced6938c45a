"""Temporary replacements of PyTorch's functions, and hooks that act on one thread."""

from __future__ import annotations

import threading
from collections import UserDict
from collections.abc import Callable
from functools import cache
from typing import Any

from .. import _torch

_lock = threading.RLock()  # a garbage collection within a block may end another one


class Original:
    """The replaced object: calling it calls ``call``, the object itself."""

    __slots__ = ("call",)

    def __init__(self, call: Any) -> None:
        self.call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


Make = Callable[[Original], Any]
"""Makes the replacement of an original, which it calls by ``original(...)``, or ``original.call``."""


class Patches:
    """Attributes, as (owner, name, make), that are replaced in a block or until ``undo``.

    It may be entered any number of times, on any threads, in any order: they are replaced until the last block ends.
    Two objects may replace the same attribute, and end in any order.
    """

    def __init__(self, *attributes: tuple[Any, str, Make]) -> None:
        self._attributes = attributes
        self._blocks = 0
        self._done: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> None:
        with _lock:
            self._blocks += 1
            if self._blocks == 1:
                for attribute in self._attributes:
                    self.replace(*attribute)

    def __exit__(self, *error: object) -> None:
        with _lock:
            self._blocks -= 1
            if self._blocks == 0:
                self.undo()

    def replace(self, owner: Any, name: str, make: Make) -> None:
        """Replace ``owner.name`` by ``make(original)`` until ``undo``; a missing name is skipped."""
        with _lock:
            value = vars(owner).get(name) if owner is not None else None
            if value is None:
                return
            original = Original(value)
            replacement = make(original)
            replacement.gradlab_original = original
            self._done.append((owner, name, replacement))
            setattr(owner, name, replacement)

    def undo(self) -> None:
        """Restore all, the newest first; under a patch of others a replacement stays, and does nothing."""
        with _lock:
            while self._done:
                owner, name, replacement = self._done[-1]
                original: Original = replacement.gradlab_original
                above = vars(owner).get(name)
                if above is replacement:
                    setattr(owner, name, original.call)
                else:  # a newer replacement calls this one: from now on it calls this one's original
                    while (newer := getattr(above, "gradlab_original", None)) and newer.call is not replacement:
                        above = newer.call
                    if newer is not None:
                        newer.call = original.call
                self._done.pop()


class ThreadHook:
    """A hook on all modules or optimizers, called for what this thread does; ``remove()`` takes it away.

    It is not put into PyTorch's own dictionary: another thread may be iterating over that, and would fail. ``kinds``
    are names in ``_torch`` of PyTorch's dictionaries. ``in_backward`` is called inside a backward pass on another
    thread, which may be one of autograd's own; it returns whether that works for this thread.
    """

    def __init__(
        self,
        hook: Callable[..., Any],
        *kinds: str,
        every_thread: bool = False,
        in_backward: Callable[[], bool] = lambda: False,
    ) -> None:
        self.in_backward = in_backward
        self._thread = None if every_thread else threading.get_ident()
        self._tables = [table for kind in kinds if (table := _table(kind)).owner is not None]
        with _lock:
            for table in self._tables:
                table.change(self._thread, lambda hooks: (*hooks, (self, hook)))

    def remove(self) -> None:
        """Stop calling the hook."""
        with _lock:
            for table in self._tables:
                table.change(self._thread, lambda hooks: tuple(item for item in hooks if item[0] is not self))


class _HookTable(UserDict[Any, Any], dict[Any, Any]):  # type: ignore[misc]  # fromkeys, which nothing uses
    """Replaces one of PyTorch's dictionaries of hooks, and adds those that belong to a thread.

    Everything else goes to PyTorch's own dictionary. That includes hooks that others add or remove meanwhile: their
    handles refer to this object, so it is kept after its removal. It is a dict because PyTorch requires one.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.owner, attribute = _torch.locate(name)
        self._in_place = Patches((self.owner, attribute, self._replace_table))
        self._by_thread: dict[int | None, tuple[tuple[Any, Any], ...]] = {}  # None: of all threads

    def change(self, thread: int | None, change: Callable[[Any], tuple[tuple[Any, Any], ...]]) -> None:
        """Change the hooks of a thread; replace PyTorch's own dictionary only while there are any."""
        idle = not self._by_thread
        if hooks := change(self._by_thread.get(thread, ())):
            self._by_thread[thread] = hooks
        else:
            self._by_thread.pop(thread, None)
        if idle and hooks:
            self._in_place.__enter__()
        elif not idle and not self._by_thread:
            self._in_place.__exit__()

    def _replace_table(self, original: Original) -> _HookTable:
        self.data = original.call
        return self

    def _added(self) -> tuple[tuple[Any, Any], ...]:
        hooks, common = self._by_thread.get(threading.get_ident(), ()), self._by_thread.get(None, ())
        if not hooks and self._by_thread and _torch.current_graph_task() >= 0:
            hooks = tuple(item for items in [*self._by_thread.values()] for item in items if item[0].in_backward())
        return hooks + common

    def __bool__(self) -> bool:
        return bool(self.data or self._added())

    def __contains__(self, key: object) -> bool:
        return key in self.data or any(key is hook_key for hook_key, _ in self._added())

    def items(self) -> Any:
        """Return a copy of PyTorch's own hooks and those added, safe to iterate over."""
        return (*self.data.items(), *self._added())

    def values(self) -> Any:
        """Return the hooks alone."""
        return (*self.data.values(), *(hook for _, hook in self._added()))


_table = cache(_HookTable)
