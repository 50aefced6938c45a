"""The line of the learner's own code that is at work."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from torch import nn

from ..._frames import Owner, code_owner, user_frame
from ..finding import NO_SITE, Site

_MOST_FRAMES = 80
_HERE = str(Path(__file__).parents[1])
_USER, _LIBRARY = Owner.USER, Owner.LIBRARY


def site_and_path(frame: FrameType | None, most: int = 4) -> tuple[Site, int]:
    """Return the learner's line, and a number for the calls that led here: one helper can serve two purposes.

    Calls in libraries count where there are no more of the learner's own.
    """
    frames: list[FrameType] = []
    libraries: list[FrameType] = []  # those outside of the last one
    left = _MOST_FRAMES
    while frame is not None and left:
        owner = code_owner(frame.f_code.co_filename)
        if owner is _USER:
            frames.append(frame)
            if len(frames) == most:
                break
            libraries.clear()
        elif owner is _LIBRARY and len(libraries) < most:
            libraries.append(frame)
        frame = frame.f_back
        left -= 1
    frames += libraries[: most - len(frames)]
    if not frames:
        return NO_SITE, 0
    site = frames[0].f_code.co_filename, frames[0].f_lineno
    return site, hash(tuple([(id(one.f_code), one.f_lasti) for one in frames]))  # finding a line takes long


def call_stack(frame: FrameType | None, most: int) -> list[Any]:
    """Return the places in the code of a frame and of those that have called it, to compare with others."""
    found: list[Any] = []
    while frame is not None and most:
        found.append(frame.f_code)
        found.append(frame.f_lasti)
        frame = frame.f_back
        most -= 1
    return found


@cache
def _in_doctor(file: str) -> bool:
    return file.startswith(_HERE)


def call_chain(frame: FrameType | None, most: int = 6) -> list[FrameType]:
    """Return the frames of the learner's own functions that led here, the innermost first."""
    frames: list[FrameType] = []
    while frame is not None and len(frames) < most:
        frame = user_frame(frame)
        if frame is not None:
            frames.append(frame)
            if frame.f_code.co_name == "<module>":  # what is above it has started the script
                break
            frame = frame.f_back
    return frames


def call_lines(frame: FrameType | None) -> tuple[Site, ...]:
    """Return the learner's lines that led here, the innermost first."""
    return tuple((frame.f_code.co_filename, frame.f_lineno) for frame in call_chain(frame))


def outside_constructors(frame: FrameType | None) -> Site:
    """Return the learner's line that makes a module, not one in its constructor or in what that calls."""
    frame = outer = user_frame(frame)
    while outer is not None:
        maker = user_frame(outer.f_back)
        if outer.f_code.co_name == "__init__" and isinstance(outer.f_locals.get("self"), nn.Module):
            frame = maker or frame
        outer = maker
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else NO_SITE


def outside_doctor(frame: FrameType) -> FrameType:
    """Return the innermost frame that is not the doctor's: of a watch around this one, perhaps."""
    while _in_doctor(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def strip_doctor_frames(trace: TracebackType | None) -> TracebackType | None:
    """Take the doctor's own frames out of a traceback: they say nothing to the learner."""
    kept = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_HERE):
            kept.append(trace)
        trace = trace.tb_next
    if not kept:
        return None
    for one, following in zip(kept, [*kept[1:], None], strict=True):
        one.tb_next = following
    return kept[0]


def call_site(depth: int = 2) -> Site:
    """Return file and line of the learner's code that led here."""
    frame = user_frame(sys._getframe(depth))
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else NO_SITE
