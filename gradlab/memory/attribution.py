"""Attribution of memory to modules, in forward and in backward, and to lines of the user's code."""

from __future__ import annotations

import linecache
import sys
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from .. import _torch
from .._frames import calling_and_innermost_frame
from .._process import ThreadHook

_MOST_MARKS = 50_000
_NO_NUMBER = 2**63  # limit of sequence numbers that show the order of creation; AccumulateGrad nodes exceed it
_COMPILED = "_orig_mod"  # the attribute in which a module from torch.compile holds the original module


def refuse_compiled(module: nn.Module) -> None:
    """Raise RuntimeError if ``module`` was compiled, because a Ledger cannot count what compiled code allocates."""
    if getattr(module, "_compiled_call_impl", None) is not None or _COMPILED in module._modules:
        raise RuntimeError(
            f"Ledger: {type(module._modules.get(_COMPILED, module)).__name__} is compiled, and a compiled module's "
            "allocations cannot be counted; use the same model without torch.compile() or .compile()"
        )


class ModuleTracker:
    """A tracker of the innermost running module or, in backward, of the module whose forward created the current node.

    Autograd numbers nodes in order of creation, so the tracker records only the next number at each start and end.
    """

    def __init__(
        self, on_call: Callable[[nn.Module, tuple[Any, ...]], None], on_output: Callable[[object], None]
    ) -> None:
        """Call ``on_call(module, inputs)`` before an outermost module runs, ``on_output(output)`` after each module."""
        self._on_call, self._on_output = on_call, on_output
        self._stack: list[str] = []
        self._names: WeakKeyDictionary[nn.Module, WeakKeyDictionary[nn.Module, str]] = WeakKeyDictionary()
        self._current_names: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
        self._starts: list[int] = []
        self._started: list[str] = []
        self._last = ""

    def hooks(self, in_backward: Callable[[], bool]) -> list[ThreadHook]:
        """Add and return hooks on the modules that this thread calls; ThreadHook describes ``in_backward``."""
        add = partial(ThreadHook, in_backward=in_backward)
        return [add(self._enter, "forward_pre_hooks"), add(self._leave, "forward_hooks", "forward_hooks_always_called")]

    def forget(self) -> None:
        """Clear the stack of running modules, on which an error may have left some that have ended."""
        self._stack.clear()

    def now(self, node: Any) -> str:
        """Return the name of the running module or, in backward, of the one that created ``node``, or "" if unknown."""
        if self._stack:  # a module runs, in a forward pass or in a recomputation within backward
            return self._stack[-1]
        if node is None:
            self._last = ""
        elif hasattr(node, "_sequence_nr") and (number := node._sequence_nr()) < _NO_NUMBER:
            index = bisect_right(self._starts, number) - 1
            self._last = self._started[index] if index >= 0 else ""
        return self._last

    def _enter(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        refuse_compiled(module)
        if not self._stack:
            if module not in self._names:
                names = {part: name or type(module).__name__ for name, part in module.named_modules()}
                self._names[module] = WeakKeyDictionary(names)
            self._current_names = self._names[module]
            self._on_call(module, inputs)
        self._stack.append(self._current_names.get(module, self._stack[-1] if self._stack else type(module).__name__))
        self._mark()

    def _leave(self, module: nn.Module, inputs: object, output: object) -> None:
        self._on_output(output)
        if self._stack:  # the stack is empty if the module started before the hooks were added
            self._stack.pop()
            self._mark()

    def _mark(self) -> None:
        if len(self._starts) >= _MOST_MARKS:
            del self._starts[: _MOST_MARKS // 2], self._started[: _MOST_MARKS // 2]
        self._starts.append(_torch.sequence_number())
        self._started.append(self._stack[-1] if self._stack else "")


class LineTracker:
    """A tracker of the line of the user's code that calls PyTorch."""

    def __init__(self) -> None:
        self.root_frame: FrameType | None = None
        """The outermost frame that ``now()`` examines: the frame that opened the ledger, or None while it is closed."""
        self._descriptions: dict[tuple[str, int], str] = {}
        self._last = ""
        self.innermost = ("", 0)  # file and number of the user's innermost line at the last call to ``now()``

    def now(self) -> str:
        """Return ``describe()`` of the user's line that calls PyTorch or, on an autograd thread, the last result."""
        calling, innermost = calling_and_innermost_frame(sys._getframe(1), self.root_frame)
        if calling is not None and innermost is not None:
            line = calling.f_code.co_filename, calling.f_lineno
            self.innermost = line if innermost is calling else (innermost.f_code.co_filename, innermost.f_lineno)
            self._last = self._descriptions.get(line) or self.describe(*line)
        return self._last

    def describe(self, file: str, line: int) -> str:
        """Return text such as "train.py:12: loss.backward()" or, for a notebook, "line 12: ...", or "" for no file."""
        if not file:
            return ""
        label = self._descriptions.get((file, line))
        if label is None:
            name = "" if file.startswith("<") or "ipykernel" in file else Path(file).name
            where = f"{name}:{line}" if name else f"line {line}"
            label = self._descriptions[file, line] = f"{where}: {linecache.getline(file, line).strip()}".rstrip(": ")
        return label
