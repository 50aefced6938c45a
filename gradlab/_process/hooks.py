"""Temporary replacements for PyTorch's functions, and global hooks that can be limited to one thread."""

from __future__ import annotations

import threading
from collections import UserDict
from collections.abc import Callable
from functools import cache
from typing import Any

from .. import _torch

_lock = threading.RLock()  # reentrant, because garbage collection may undo patches while a thread holds the lock


class Original:
    """A callable that calls its attribute ``call``, the object that a patch has replaced."""

    __slots__ = ("call",)

    def __init__(self, call: Any) -> None:
        self.call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


Make = Callable[[Original], Any]
"""A function that takes an Original and returns its replacement, which may call the original."""


class Patches:
    """Replacements for attributes, each given as (owner, name, make), that last for a ``with`` block or until ``undo``.

    An instance may be entered several times, on any threads: the attributes stay replaced until the last block ends.
    Several instances may replace the same attribute, and may be undone in any order.
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
        """Replace ``owner.name`` with ``make(original)`` until ``undo``; do nothing if there is no such attribute."""
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
        """Restore the attributes in reverse order; a replacement that other code has patched over stays in place."""
        with _lock:
            while self._done:
                owner, name, replacement = self._done[-1]
                original: Original = replacement.gradlab_original
                above = vars(owner).get(name)
                if above is replacement:
                    setattr(owner, name, original.call)
                else:  # a newer replacement that calls this one must call this one's original instead
                    while (newer := getattr(above, "gradlab_original", None)) and newer.call is not replacement:
                        above = newer.call
                    if newer is not None:
                        newer.call = original.call
                self._done.pop()


class ThreadHook:
    """A hook on all modules or optimizers that, until ``remove()``, is called on the thread that created the hook.

    The hook is not added to PyTorch's dictionary of hooks, because another thread may be iterating over the dictionary.
    ``kinds`` are the dictionaries' keys in ``_torch.PRIVATE_NAMES``. If ``every_thread`` is True, all threads call the
    hook. A backward pass on another thread, such as autograd's, calls the hook if ``in_backward()`` returns True.
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


class _HookTable(UserDict[Any, Any], dict[Any, Any]):  # type: ignore[misc]  # fromkeys differs, but is not used
    """A replacement for one of PyTorch's dictionaries of global hooks, which also yields the current thread's hooks.

    All other access goes to PyTorch's dictionary. The handles of hooks that other code adds meanwhile refer to the
    replacement, so it is kept for as long as Python runs. It is a dict because PyTorch requires one.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.owner, attribute = _torch.locate(name)
        self._in_place = Patches((self.owner, attribute, self._replace_table))
        self._by_thread: dict[int | None, tuple[tuple[Any, Any], ...]] = {}  # hooks by thread id; None: all threads

    def change(self, thread: int | None, change: Callable[[Any], tuple[tuple[Any, Any], ...]]) -> None:
        """Set the hooks of ``thread`` to ``change(hooks)``; replace PyTorch's dictionary while any thread has hooks."""
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
        """Return PyTorch's and this thread's hooks as a tuple of (key, hook) pairs, which is safe to iterate over."""
        return (*self.data.items(), *self._added())

    def values(self) -> Any:
        return (*self.data.values(), *(hook for _, hook in self._added()))


_table = cache(_HookTable)
