"""A fast dispatch mode whose instances may be exited in any order."""

from __future__ import annotations

from typing import Any

from .. import _torch


class DispatchMode(_torch.TorchDispatchMode):
    """A base class for dispatch modes, without the overhead of PyTorch's own base class."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, so that PyTorch does not put a slow wrapper around ``__torch_dispatch__``."""
        return False

    def __exit__(self, *error: Any) -> None:
        """Remove this mode from the stack, even if it is not the innermost mode; the modes inside it stay active."""
        kind, stack = _torch.TorchDispatchMode, _torch.dispatch_mode_stack()
        within = stack[stack.index(self) + 1 :] if self in stack else []
        for inner in reversed(within):  # with PyTorch's methods, since a subclass's own methods may do more
            kind.__exit__(inner, None, None, None)
        super().__exit__(*error)
        for inner in within:
            kind.__enter__(inner)
