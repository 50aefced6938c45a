"""What a check finds in the kernel it leaves there, whatever an answer has switched, seeded or left open."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..._process import preserving_rng

_DEVICES = ("cpu", "cuda")


@contextmanager
def preserving_torch_state() -> Iterator[None]:
    """Go in with grad mode on, and put back afterwards what is a matter of the whole kernel.

    That is: grad and inference mode, autocast, the default dtype and device, and Python's recursion limit.
    """
    dtype, device, limit = torch.get_default_dtype(), torch.get_default_device(), sys.getrecursionlimit()
    cast, nesting = _autocast(), _nesting()
    try:
        with torch.inference_mode(False):  # on its way out it puts grad mode and inference mode back
            yield
    finally:
        sys.setrecursionlimit(limit)
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(None if device == torch.device("cpu") else device)
        if _autocast() != cast:
            for name, (on, kind) in cast.items():
                torch.set_autocast_enabled(name, on)
                torch.set_autocast_dtype(name, kind)
        if _nesting() != nesting:  # a region that was never left: its casts of the weights would be used for ever
            torch.clear_autocast_cache()
            while _nesting() > nesting:
                torch.autocast_decrement_nesting()
            while _nesting() < nesting:
                torch.autocast_increment_nesting()


@contextmanager
def preserving_all_rngs() -> Iterator[None]:
    """Put the random numbers of torch, of Python and of numpy back where they were."""
    own = random.getstate()
    numpy: Any = sys.modules.get("numpy")
    theirs = None if numpy is None else numpy.random.get_state()
    # torch.manual_seed seeds every GPU, too; one that nothing has used yet has no random numbers to keep.
    try:
        with preserving_rng(cuda=torch.cuda.is_initialized()):
            yield
    finally:
        random.setstate(own)
        if theirs is not None:
            numpy.random.set_state(theirs)


def _autocast() -> dict[str, tuple[bool, torch.dtype]]:
    return {name: (torch.is_autocast_enabled(name), torch.get_autocast_dtype(name)) for name in _DEVICES}


def _nesting() -> int:
    """Return in how many autocast regions this is; PyTorch tells it only to who enters or leaves one."""
    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())
