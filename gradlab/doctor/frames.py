"""The learner's own frames: the line that is at work, the calls that led there, and the values of expressions there."""

from __future__ import annotations

import ast
import inspect
import operator
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from torch import nn

from .._frames import Owner, code_owner, frames, user_frame, variables
from .finding import NO_SITE, Site

_MOST_FRAMES = 80
_MOST_CALLS = 4
_MOST_FUNCTIONS = 6
_HERE = str(Path(__file__).parent)
_USER, _LIBRARY = Owner.USER, Owner.LIBRARY


def _site(frame: FrameType | None) -> Site:
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else NO_SITE


def site_and_path(frame: FrameType | None) -> tuple[Site, int]:
    """Return the learner's line, and a number for the calls that led here: one helper can serve two purposes.

    Calls in libraries count where there are no more of the learner's own.
    """
    chain: list[FrameType] = []
    libraries: list[FrameType] = []  # those outside of the last one
    for each_frame in islice(frames(frame), _MOST_FRAMES):
        owner = code_owner(each_frame.f_code.co_filename)
        if owner is _USER:
            chain.append(each_frame)
            libraries.clear()
            if len(chain) == _MOST_CALLS:
                break
        elif owner is _LIBRARY:
            libraries.append(each_frame)
    chain = [*chain, *libraries][:_MOST_CALLS]
    path = hash(tuple([(id(link.f_code), link.f_lasti) for link in chain])) if chain else 0  # finding a line takes long
    return _site(chain[0] if chain else None), path


def call_chain(frame: FrameType | None) -> list[FrameType]:
    """Return the frames of the learner's own functions that led here, the innermost first."""
    chain: list[FrameType] = []
    while len(chain) < _MOST_FUNCTIONS and (frame := user_frame(frame)) is not None:
        chain.append(frame)
        if frame.f_code.co_name == "<module>":  # what is above it has started the script
            break
        frame = frame.f_back
    return chain


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


def strip_doctor_frames(error: BaseException) -> None:
    """Take the doctor's own frames, which say nothing to the learner, out of an error and those that led to it."""
    waiting: list[BaseException | None] = [error]
    visited: set[int] = set()
    while waiting:
        if (current := waiting.pop()) is None or id(current) in visited:
            continue
        visited.add(id(current))
        waiting += [current.__cause__, current.__context__]
        trace, traces = current.__traceback__, []
        while trace is not None:
            if not trace.tb_frame.f_code.co_filename.startswith(_HERE):
                traces.append(trace)
            trace = trace.tb_next
        current.__traceback__ = None
        for trace in reversed(traces):
            trace.tb_next, current.__traceback__ = current.__traceback__, trace


def call_site(depth: int = 2) -> Site:
    """Return file and line of the learner's code that led here."""
    return _site(user_frame(sys._getframe(depth)))


_WHOLE: dict[type[ast.operator], Any] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def value_in(frame: FrameType, node: ast.AST) -> Any:
    """Return the value that a name, attribute or item has in a function, or what whole numbers add up to; else None.

    It is looked up, and nothing of the learner's is run.
    """
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return {**frame.f_globals, **variables(frame)}.get(node.id)
    if isinstance(node, ast.BinOp) and type(node.op) in _WHOLE:
        left, right = value_in(frame, node.left), value_in(frame, node.right)
        return _WHOLE[type(node.op)](left, right) if type(left) is type(right) is int else None
    if isinstance(node, ast.Attribute):
        return inspect.getattr_static(value_in(frame, node.value), node.attr, None)
    if isinstance(node, ast.Subscript):
        owner, index = value_in(frame, node.value), value_in(frame, node.slice)
        if type(owner) in (dict, list, tuple) and type(index) in (int, str):
            with suppress(LookupError, TypeError):  # the variables may have changed since
                return owner[index]
    return None
