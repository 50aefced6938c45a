"""Kernels: what one operation takes from the CPU's allocator while it works, scratch memory included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _torch


def call_with_peak(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, int]:
    """Call a function; return its result and the most bytes that it had allocated at one moment.

    The allocator tells of every allocation while a profile is taken. Within somebody else's profile there can be no
    second one: then the bytes are 0.
    """
    if _torch.profiler_enabled():
        return function(*args, **kwargs), 0
    _torch.enable_profiler(_config())
    try:
        result = function(*args, **kwargs)
    finally:
        threads = _torch.disable_profiler()
    now = most = 0
    for event in (event for events in threads for event in events):
        if event.kind() == "memory_alloc":
            now += event.cpu_memory_usage()
            most = max(most, now)
    return result, most


def _config() -> Any:
    state, extra = _torch.ProfilerState.CPU, _torch.ExperimentalConfig()
    shapes, memory, stack, flops, modules = False, True, False, False, False
    return _torch.ProfilerConfig(state, shapes, memory, stack, flops, modules, extra)
