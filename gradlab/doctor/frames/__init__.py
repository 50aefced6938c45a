"""The line of the learner's own code that is at work."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from types import FrameType, TracebackType

from torch import nn

from ..._frames import Owner, code_owner, frames, user_frame
from ..finding import NO_SITE, Site

_MOST_FRAMES = 80
_MOST_CALLS = 4
_MOST_FUNCTIONS = 6
_HERE = str(Path(__file__).parents[1])
_USER, _LIBRARY = Owner.USER, Owner.LIBRARY


def _site(frame: FrameType | None) -> Site:
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else NO_SITE


def site_and_path(frame: FrameType | None) -> tuple[Site, int]:
    """Return the learner's line, and a number for the calls that led here: one helper can serve two purposes.

    Calls in libraries count where there are no more of the learner's own.
    """
    found: list[FrameType] = []
    libraries: list[FrameType] = []  # those outside of the last one
    for one in islice(frames(frame), _MOST_FRAMES):
        owner = code_owner(one.f_code.co_filename)
        if owner is _USER:
            found.append(one)
            libraries.clear()
            if len(found) == _MOST_CALLS:
                break
        elif owner is _LIBRARY:
            libraries.append(one)
    found = [*found, *libraries][:_MOST_CALLS]
    path = hash(tuple([(id(one.f_code), one.f_lasti) for one in found])) if found else 0  # finding a line takes long
    return _site(found[0] if found else None), path


def call_chain(frame: FrameType | None) -> list[FrameType]:
    """Return the frames of the learner's own functions that led here, the innermost first."""
    found: list[FrameType] = []
    while len(found) < _MOST_FUNCTIONS and (frame := user_frame(frame)) is not None:
        found.append(frame)
        if frame.f_code.co_name == "<module>":  # what is above it has started the script
            break
        frame = frame.f_back
    return found


def call_lines(frame: FrameType | None) -> tuple[Site, ...]:
    """Return the learner's lines that led here, the innermost first."""
    return tuple(map(_site, call_chain(frame)))


def outside_constructors(frame: FrameType | None) -> Site:
    """Return the learner's line that makes a module, not one in its constructor or in what that calls."""
    frame = outer = user_frame(frame)
    while outer is not None:
        maker = user_frame(outer.f_back)
        if outer.f_code.co_name == "__init__" and isinstance(outer.f_locals.get("self"), nn.Module):
            frame = maker or frame
        outer = maker
    return _site(frame)


def outside_doctor(frame: FrameType) -> FrameType:
    """Return the innermost frame that is not the doctor's: of a watch around this one, perhaps."""
    while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
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
    return _site(user_frame(sys._getframe(depth)))
