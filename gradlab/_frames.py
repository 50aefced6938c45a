"""The owner of a file's code, and the frame or line of the reader's own code that led here.

All messages that name a line use this rule. Ours are PyTorch, gradlab and Python's frozen modules. A library's are
other installed packages and Python's standard library. All the rest is the reader's: files, cells of a notebook, and
texts without a file, such as a loop in a Lab.
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
_OWN_REFERENCES = 3  # the frame's, that of a variable, and that of the call which counts
_STANDARD = str(Path(sysconfig.get_paths()["stdlib"]))


class Owner(Enum):
    """The owner of a file's code."""

    OURS = "PyTorch's and gradlab's"
    LIBRARY = "other libraries' and Python's own"
    USER = "the reader's"


_USER, _LIBRARY, _OURS = Owner.USER, Owner.LIBRARY, Owner.OURS


@cache
def code_owner(file: str) -> Owner:
    """Return the owner of a file's code."""
    if file.startswith(_our_folders()):
        return _OURS
    library = "site-packages" in file or "dist-packages" in file or file.startswith(_STANDARD)
    return _LIBRARY if library else _USER


@cache
def _our_folders() -> tuple[str, ...]:
    torch = importlib.util.find_spec("torch")  # found, not imported
    theirs = () if torch is None else tuple(torch.submodule_search_locations or ())
    return (*(folder + os.sep for folder in (str(Path(__file__).parent), *theirs)), "<frozen")


def frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that have called it, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the reader's code, or else of a library that is not PyTorch."""
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
    """Return the reader's frame within ``last`` that has called into PyTorch, and the innermost one as ``user_frame``.

    Frames further in than the first were called by PyTorch, as a forward or a hook is. A library's frame stands in for
    the reader's; None without any, and if ``last`` is not reached.
    """
    calling, innermost, calling_owner, innermost_owner = None, None, _OURS, _OURS
    while frame is not None:  # not with ``frames``, since this runs at every operation under a Ledger
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
    """Return the innermost code that an error came through, and its line, of files for which ``is_theirs(file)``."""
    walked = ((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__))
    sites = [(code, line) for code, line in walked if line and is_theirs(code.co_filename)]
    return sites[-1] if sites else None


def variables(frame: FrameType) -> dict[str, Any]:
    """Return the local variables of a function by name.

    Until Python 3.12 a frame keeps the dictionary that it returns, and with it the old values of variables: their
    tensors would stay alive. It is emptied, unless the reader's own ``locals()`` has it, too.
    """
    live = frame.f_locals
    copied = dict(live)
    if type(live) is dict and frame.f_code.co_flags & CO_OPTIMIZED and sys.getrefcount(live) <= _OWN_REFERENCES:
        live.clear()
    return copied
