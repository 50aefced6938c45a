"""Owners of source files, and searches of the call stack for the user's code.

A message names a line of the user's code or, if there is none, of a library's. The owner OURS covers PyTorch, gradlab
and Python's frozen modules. LIBRARY covers other installed packages and Python's standard library. USER covers
everything else: files, cells of a notebook, and source without a file, such as a loop in a Lab.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from inspect import CO_OPTIMIZED
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_MOST_FRAMES = 80
_OWN_REFERENCES = 3  # references to ``f_locals`` by the frame, by ``live`` and by getrefcount, not by the user's code
_STANDARD = str(Path(sysconfig.get_paths()["stdlib"]))


class Owner(Enum):
    """The owner of a file's code."""

    OURS = "PyTorch's and gradlab's"
    LIBRARY = "other libraries' and Python's own"
    USER = "the user's"


_USER, _LIBRARY, _OURS = Owner.USER, Owner.LIBRARY, Owner.OURS


@cache
def code_owner(file: str) -> Owner:
    """Return the owner of the code in ``file``, the ``co_filename`` of a code object."""
    if file.startswith(_our_folders()):
        return _OURS
    library = "site-packages" in file or "dist-packages" in file or file.startswith(_STANDARD)
    return _LIBRARY if library else _USER


@cache
def _our_folders() -> tuple[str, ...]:
    torch = importlib.util.find_spec("torch")  # without importing torch
    theirs = () if torch is None else tuple(torch.submodule_search_locations or ())
    return (*(folder + os.sep for folder in (str(Path(__file__).parent), *theirs)), "<frozen")


def frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield ``frame`` and its callers, the innermost first; yield nothing for None."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost user frame among ``frame`` and 79 callers, else the innermost library frame, else None."""
    library = None
    for caller in islice(frames(frame), _MOST_FRAMES):
        owner = code_owner(caller.f_code.co_filename)
        if owner is _USER:
            return caller
        if owner is _LIBRARY and library is None:
            library = caller
    return library


def calling_and_innermost_frame(
    frame: FrameType | None, last: FrameType | None
) -> tuple[FrameType | None, FrameType | None]:
    """Return the user's frame that made the outermost call into PyTorch, and the user's innermost frame.

    The frames differ if PyTorch has called the user's code, such as a hook. The search covers ``frame`` and its callers
    up to ``last``; if none is the user's, return a library's. Return (None, None) if ``last`` is not among them.
    """
    calling, innermost, calling_owner, innermost_owner = None, None, _OURS, _OURS
    while frame is not None:  # ``frames`` would be too slow for every operation under a Ledger
        owner = code_owner(frame.f_code.co_filename)
        if owner is _OURS:
            calling, calling_owner = None, _OURS
        else:
            if calling is None or (owner is _USER and calling_owner is _LIBRARY):
                calling, calling_owner = frame, owner
            if innermost is None or (owner is _USER and innermost_owner is _LIBRARY):
                innermost, innermost_owner = frame, owner
        if frame is last:
            return calling, innermost
        frame = frame.f_back
    return None, None


def raised_at(error: BaseException, is_theirs: Callable[[str], bool]) -> tuple[CodeType, int] | None:
    """Return the code object and line of ``error``'s innermost frame whose file ``is_theirs`` accepts, or None."""
    walked = ((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__))
    sites = [(code, line) for code, line in walked if line and is_theirs(code.co_filename)]
    return sites[-1] if sites else None


def variables(frame: FrameType) -> dict[str, Any]:
    """Return a copy of a frame's local variables by name.

    Up to Python 3.12, a function's frame keeps the dictionary ``f_locals``, which would keep old values such as tensors
    alive. The dictionary is emptied here, unless the user's code also holds it through ``locals()``.
    """
    live = frame.f_locals
    copied = dict(live)
    if type(live) is dict and frame.f_code.co_flags & CO_OPTIMIZED and sys.getrefcount(live) <= _OWN_REFERENCES:
        live.clear()
    return copied
