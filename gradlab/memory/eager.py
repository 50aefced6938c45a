"""Compiled code within a Ledger runs as it is written: under a Ledger, PyTorch would compile it anew, for nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from .replacing import Replacement

_DYNAMO = "torch._dynamo"


class _Eagerly:
    """Lets compiled code run eagerly while any Ledger is open: ``torch.compiler.set_stance``, once there is a need.

    Setting it would import ``torch._dynamo``, for 1.5 seconds. So if nobody has done so, ``torch.compile`` does it.
    """

    def __init__(self) -> None:
        self._users = 0
        self._stance: Any = None
        self._compile = Replacement((torch, "compile", self._compiling))

    def __enter__(self) -> None:
        if _DYNAMO in sys.modules:
            self._begin()
        self._users += 1
        self._compile.__enter__()

    def __exit__(self, *error: object) -> None:
        self._users -= 1
        self._compile.__exit__()
        if self._users == 0 and self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None

    def _begin(self) -> None:
        # A Ledger that is opened in compiled code itself cannot change how that runs.
        if self._stance is None and not torch.compiler.is_compiling():
            with suppress(RuntimeError):
                self._stance = torch.compiler.set_stance("force_eager")

    def _compiling(self, compile: Callable[..., Any]) -> Callable[..., Any]:
        def compiled(*args: Any, **kwargs: Any) -> Any:
            result = compile(*args, **kwargs)
            if self._users:
                self._begin()
            return result

        return compiled


running_eagerly = _Eagerly()
"""A context manager, for any number of ledgers that come and go in any order."""
