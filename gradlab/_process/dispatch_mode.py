"""A fast base class for dispatch modes, which may be exited in any order."""

from __future__ import annotations

from typing import Any

from .. import _torch


class DispatchMode(_torch.TorchDispatchMode):
    """A base class for dispatch modes, with less overhead per operation than PyTorch's own base class."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, so that PyTorch does not put a slow wrapper around ``__torch_dispatch__``."""
        return False

    def __exit__(self, *error: Any) -> None:
        """Remove this mode from the stack of dispatch modes, even if it is not innermost; inner modes stay active."""
        kind, stack = _torch.TorchDispatchMode, _torch.dispatch_mode_stack()
        within = stack[stack.index(self) + 1 :] if self in stack else []
        for inner in reversed(within):  # PyTorch's methods are called, because a subclass's own may do more
            kind.__exit__(inner, None, None, None)
        super().__exit__(*error)
        for inner in within:
            kind.__enter__(inner)
