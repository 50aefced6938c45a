"""Every private name of PyTorch that gradlab relies on."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes


def outside_dispatch_modes() -> AbstractContextManager[Any]:
    """Compute something of our own in the middle of the loop's work, unseen by a Ledger that counts its bytes."""
    return _disable_current_modes() if torch._C._len_torch_dispatch_stack() else nullcontext()
