"""Which variable holds the graphs of past updates, and which line puts them there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from torch import Tensor, nn

from ..callsite import Owner, code_owner, user_frame, variables
from ..events import NO_SITE, Site
from ..source.source_search import adds_to
from .autograd_graph import old_roots

_NEWEST = 12  # elements of a container that are looked at


def find_graph_holder(frame: FrameType | None, now: int) -> Site:
    """Find the line that keeps old graphs alive, from a frame outwards; ``now`` is the number of the backward pass."""
    frame = user_frame(frame)
    while frame is not None:
        file = frame.f_code.co_filename
        for name, value in variables(frame).items():
            for kept in _keeping(name, value, now):
                if line := adds_to(file, kept, frame.f_lineno):
                    return file, line
        frame = user_frame(frame.f_back)
    return NO_SITE


def _keeping(name: str, value: Any, now: int) -> Iterator[str]:
    """Yield the names, of a variable or of an attribute of its object, under which old graphs are held."""
    if _old_graphs_in(value, now) > 0:
        yield name
    elif hasattr(value, "__dict__") and not isinstance(value, (Tensor, nn.Module, type)) and _own(value):
        for attribute, part in list(vars(value).items()):
            if _old_graphs_in(part, now) > 0:
                yield attribute


def _own(value: Any) -> bool:
    """Is this an object of a class of the learner's?"""
    code = getattr(getattr(type(value), "__init__", None), "__code__", None)
    return code is not None and code_owner(code.co_filename) is Owner.USER


def _old_graphs_in(value: Any, now: int, depth: int = 3) -> int:
    """Return how many old graphs a tensor, or a container of them, holds."""
    if isinstance(value, Tensor):
        return old_roots(value.grad_fn, now) if value.grad_fn is not None else 0
    if depth == 0:
        return 0
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, deque)):
        # The oldest are looked at, too: a graph that has just been made is no leak.
        some = [*list(value)[:_NEWEST], *list(value)[-_NEWEST:]]
        return sum(_old_graphs_in(one, now, depth - 1) for one in some)
    return 0
