"""A dispatch mode that may be left in any order, and that is quick."""

from __future__ import annotations

from typing import Any

from .. import _torch


class DispatchMode(_torch.TorchDispatchMode):
    """Hands every operation to ``__torch_dispatch__``, as PyTorch's own does."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Leave ``__torch_dispatch__`` as it is: PyTorch's wrapper around it costs more than all the rest."""
        return False

    def __exit__(self, *error: Any) -> None:
        """Stop, also where it is no longer the innermost mode: those within it stay."""
        kind, stack = _torch.TorchDispatchMode, _torch.dispatch_mode_stack()
        within = stack[stack.index(self) + 1 :] if self in stack else []
        for inner in reversed(within):  # with PyTorch's own methods: a mode may do more in its own
            kind.__exit__(inner, None, None, None)
        super().__exit__(*error)
        for inner in within:
            kind.__enter__(inner)
