"""A log of tensor operations, and of the bytes that the operations read and write."""

from __future__ import annotations

import weakref
from typing import Any

from torch import Tensor

from .._process import DispatchMode
from ..memory import iter_tensors

# Names of operations that overwrite their first tensor without reading it.
_OVERWRITES = ("zero_", "fill_", "copy_", "_foreach_zero_")


class OperationLog(DispatchMode):
    """A log of the ATen operations in a ``with`` block: their names, bytes moved, and the number of storages created.

    Views are not logged. Each operand counts as read once, and each result as written once, as if without caches.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        """The names of the operations, such as ``"add_"`` and ``"mm"``, in order of execution."""
        self.read = self.written = 0
        """The number of bytes that the operations have read, and the number that they have written."""
        self.made = 0
        """The number of storages that the operations have created."""
        self._alive: dict[int, weakref.ref[Any]] = {}

    @property
    def moved(self) -> int:
        """The total number of bytes read and written."""
        return self.read + self.written

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = call(*args, **(kwargs or {}))
        if call.namespace == "aten" and not call.is_view:
            name = call.overloadpacket.__name__
            arguments = dict(zip((each.name for each in call._schema.arguments), args, strict=False)) | (kwargs or {})
            changes = [each.name for each in call._schema.arguments if each.alias_info and each.alias_info.is_write]
            changed = list(iter_tensors([arguments[each] for each in changes if each in arguments]))
            inputs = list(iter_tensors([value for each, value in arguments.items() if each not in changes]))
            self.names.append(name)
            self.read += sum(each.nbytes for each in (inputs if name in _OVERWRITES else inputs + changed))
            if not name.startswith(("empty", "new_empty")):  # they only allocate
                self.written += sum(each.nbytes for each in changed or iter_tensors(result))
            for each in () if changed else iter_tensors(result):
                self._note(each)
        return result

    def _note(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._alive:
            self.made += 1
            self._alive[key] = weakref.ref(storage, lambda _: self._alive.pop(key, None))  # the key may be reused
