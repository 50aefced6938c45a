"""The learner's stack frames: the running line, the calls that led to it, and the values of expressions in a frame."""

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
    """Return the line of the learner's innermost frame, or else a library's, and a hash of the calls that led to it.

    The hash covers the learner's ``_MOST_CALLS`` innermost calls, so that it differs between the callers of a helper.
    If there are fewer calls, the hash also covers the library calls around them.
    """
    chain: list[FrameType] = []
    libraries: list[FrameType] = []  # the library frames around the outermost frame of ``chain``
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
    path = hash(tuple([(id(link.f_code), link.f_lasti) for link in chain])) if chain else 0  # f_lineno is slow
    return _site(chain[0] if chain else None), path


def call_chain(frame: FrameType | None) -> list[FrameType]:
    """Return the learner's frames from ``frame`` outwards, then library frames, up to ``_MOST_FUNCTIONS`` in all."""
    chain: list[FrameType] = []
    while len(chain) < _MOST_FUNCTIONS and (frame := user_frame(frame)) is not None:
        chain.append(frame)
        if frame.f_code.co_name == "<module>":  # the callers of a script's top level only start the script
            break
        frame = frame.f_back
    return chain


def call_lines(frame: FrameType | None) -> tuple[Site, ...]:
    """Return the file and line of each frame in ``call_chain(frame)``, the innermost first."""
    return tuple(map(_site, call_chain(frame)))


def outside_constructors(frame: FrameType | None) -> Site:
    """Return the learner's innermost line, from ``frame`` outwards, that does not run inside a module constructor."""
    frame = outer = user_frame(frame)
    while outer is not None:
        maker = user_frame(outer.f_back)
        if outer.f_code.co_name == "__init__" and isinstance(outer.f_locals.get("self"), nn.Module):
            frame = maker or frame
        outer = maker
    return _site(frame)


def outside_doctor(frame: FrameType) -> FrameType:
    """Return the innermost frame, from ``frame`` outwards, that does not run the doctor's own code."""
    while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def strip_doctor_frames(error: BaseException) -> None:
    """Remove the doctor's own frames from the tracebacks of an error and of the errors that led to it."""
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
    """Return the learner's line that led to the frame ``depth`` levels up the stack from this function."""
    return _site(user_frame(sys._getframe(depth)))


_WHOLE: dict[type[ast.operator], Any] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def value_in(frame: FrameType, node: ast.AST) -> Any:
    """Return the value of an expression in ``frame``, or None if it cannot be read without running the learner's code.

    Names, attributes, items of plain containers, constants, and sums, differences and products of ints can be read.
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
            with suppress(LookupError, TypeError):  # the container or the index may have changed since the line ran
                return owner[index]
    return None
