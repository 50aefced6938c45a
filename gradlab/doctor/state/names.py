"""The names that optimizers, models and parameters have in the learner's own code."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from ..._frames import user_frame, variables

_MOST_SEARCHES = 16
_MOST_NAMES = 4
_SHORT_NAME = 3  # names with fewer characters come last
_SHELL = ("exit", "quit", "In", "Out", "get_ipython")  # names that IPython adds to the user's variables
_MOST_FRAMES = 12
_MOST_OBJECTS = 4000
_MOST_ELEMENTS = 64
_DEPTH = 3  # levels of attributes and elements, as in trainer.agents[0].critic
_LIBRARIES = ("gradlab", "torch")  # packages whose objects are not searched


class VariableNames:
    """The names of optimizers and parameters, by index, found in the variables of the learner's functions.

    An object can have several names, the innermost function's first: ``opt`` in a helper, ``optimizer_D`` outside.
    """

    def __init__(self) -> None:
        self._searches = 0
        self.optimizers: dict[int, list[str]] = {}
        self.params: dict[int, list[str]] = {}

    def wants(self, *, optimizer: int, params: int) -> bool:
        """Return whether ``optimizer`` or one of ``params`` has no name yet and another search is allowed."""
        nameless = bool(params & ~sum(1 << number for number in self.params))
        return self._searches < _MOST_SEARCHES and (nameless or (optimizer >= 0 and optimizer not in self.optimizers))

    def collect(self, frame: FrameType | None, numbers: dict[int, int], bits: Callable[[list[Tensor]], int]) -> None:
        """Collect names from the variables of ``frame`` and of its callers.

        ``numbers`` maps ids of optimizers to indices; ``bits`` returns the set of the watched parameters in a list.
        """
        self._searches += 1
        for _ in range(_MOST_FRAMES):
            if (frame := user_frame(frame)) is None:
                return
            for name, value in _named_objects(frame):
                if isinstance(value, Optimizer):
                    table, number = self.optimizers, numbers.get(id(wrapped_optimizer(value)), -1)
                else:
                    table, number = self.params, bits([value]).bit_length() - 1
                names = table.setdefault(number, []) if number >= 0 else None
                if names is not None and name not in names and len(names) < _MOST_NAMES:
                    names.append(name)
            frame = frame.f_back

    def forget_params(self, params: int) -> None:
        """Forget the names of ``params``, whose indices are reused for new parameters."""
        self.params = {number: names for number, names in self.params.items() if not params >> number & 1}

    def optimizer(self, number: int) -> str:
        """Return the name of an optimizer, or "" if none is known."""
        return _clearest(self.optimizers, number)

    def param(self, number: int) -> str:
        """Return the name of a parameter, or "" if none is known."""
        return _clearest(self.params, number)


def wrapped_optimizer(optimizer: Optimizer) -> Optimizer:
    """Return the optimizer inside a trainer's wrapper, such as AcceleratedOptimizer, or ``optimizer`` itself."""
    inner = getattr(optimizer, "optimizer", None)
    if isinstance(inner, Optimizer) and inner.param_groups is optimizer.param_groups:
        return inner
    return optimizer


def _clearest(names: dict[int, list[str]], number: int) -> str:
    """Return the best name of an object, or "". Unique names come first, and short names such as ``o`` come last."""
    candidates = sorted(names.get(number, []), key=lambda name: len(name) < _SHORT_NAME)
    unique = [name for name in candidates if sum(name in other for other in names.values()) == 1]
    return next(iter(unique or candidates), "")


def _named_objects(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Yield (expression, object) for the optimizers and parameters in a function's variables and their parts."""
    local = variables(frame).items()
    waiting = deque((name, value, 0) for name, value in local if not name.startswith("_") and name not in _SHELL)
    if frame.f_code.co_name != "<module>":
        used = frame.f_code.co_names
        waiting += [(name, frame.f_globals[name], 0) for name in used if name in frame.f_globals]
    visited: set[int] = set()
    while waiting and len(visited) < _MOST_OBJECTS:
        name, value, depth = waiting.popleft()
        if isinstance(value, (str, int, float, bytes, type, ModuleType)):
            continue
        if isinstance(value, nn.Module):
            yield from ((spelled(f"{name}.{inner}"), param) for inner, param in value.named_parameters())
        elif isinstance(value, Optimizer) or _is_learned(value):
            yield name, value
        if depth < _DEPTH and id(value) not in visited and not isinstance(value, (Tensor, Optimizer)):
            visited.add(id(value))
            waiting += [(inner, child, depth + 1) for inner, child in _children(name, value)]


def _is_learned(value: Any) -> bool:
    try:
        return isinstance(value, Tensor) and value.is_leaf and value.requires_grad
    except RuntimeError:  # raised for a view made under no_grad() whose base was changed in place later
        return False


def spelled(name: str) -> str:
    """Return a dotted name as a Python expression: ``net.blocks[0].weight`` for ``net.blocks.0.weight``."""
    return re.sub(r"\.(\d+)(?=[.\[]|$)", r"[\1]", name)


def _children(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (expression, value) for a container's elements, a module's plain containers, or an object's attributes."""
    if isinstance(value, dict):
        for key, child in list(value.items())[:_MOST_ELEMENTS]:
            if isinstance(key, (str, int)):
                yield f"{name}[{key!r}]", child
    elif isinstance(value, (list, tuple)):
        for number, child in enumerate(value[:_MOST_ELEMENTS]):
            yield f"{name}[{number}]", child
    elif isinstance(value, nn.Module):
        for path, part in value.named_modules():
            for key, child in vars(part).items():  # PyTorch does not register layers in a plain list
                if isinstance(child, (list, tuple, dict)) and child and not key.startswith("_"):
                    yield spelled(".".join(filter(None, (name, path, key)))), child
    elif hasattr(value, "__dict__") and type(value).__module__.partition(".")[0] not in _LIBRARIES:
        for key, child in list(vars(value).items()):
            if not key.startswith("__"):
                yield f"{name}.{key}", child
