"""Sites: the line of the learner's own code that is at work."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType

import torch

from .events import NOWHERE, Site

_MOST_FRAMES = 80
_HERE = str(Path(__file__).parent)
_OURS = (str(Path(torch.__file__).parent), _HERE, "<frozen")
_STANDARD = str(Path(sysconfig.get_paths()["stdlib"]))


@cache
def rank(file: str) -> int:
    """Return 0 for PyTorch's code and ours, 1 for other libraries and Python itself, 2 for the learner's."""
    if file.startswith(_OURS):
        return 0
    return 1 if "site-packages" in file or "dist-packages" in file or file.startswith(_STANDARD) else 2


def learner(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the learner's code, or else of a library that is not PyTorch."""
    library = None
    for _ in range(_MOST_FRAMES):
        if frame is None:
            break
        kind = rank(frame.f_code.co_filename)
        if kind == 2:
            return frame
        if kind == 1 and library is None:
            library = frame
        frame = frame.f_back
    return library


def route(frame: FrameType | None, most: int = 4) -> int:
    """Return a number for the learner's lines that led here, caller by caller: one helper can serve two purposes."""
    lines: list[tuple[int, int]] = []
    while frame is not None and len(lines) < most:
        frame = learner(frame)
        if frame is not None:
            lines.append((id(frame.f_code), frame.f_lineno))
            frame = frame.f_back
    return hash(tuple(lines))


def outside(frame: FrameType) -> FrameType:
    """Return the innermost frame that is not the doctor's: of a watch around this one, perhaps."""
    while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Take the doctor's own frames out of a traceback: they say nothing to the learner."""
    kept = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_HERE):
            kept.append(trace)
        trace = trace.tb_next
    for one, following in zip(kept, [*kept[1:], None], strict=True):
        one.tb_next = following
    return kept[0] if kept else None


def site(depth: int = 2) -> Site:
    """Return file and line of the learner's code that led here."""
    frame = learner(sys._getframe(depth))
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else NOWHERE
