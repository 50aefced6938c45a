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

_MOST_LOOKS = 16
_MOST_NAMES = 4
_SHORT = 3  # letters
_SHELL = ("exit", "quit", "In", "Out", "get_ipython")  # what IPython puts beside a reader's variables
_MOST_FRAMES = 12
_MOST_THINGS = 4000
_MOST_ELEMENTS = 64
_DEPTH = 3  # trainer.agents[0].critic
_OURS = ("gradlab", "torch")  # packages


class VariableNames:
    """Names of optimizers and parameters by their numbers, from the variables that the learner's functions see.

    An object can have several names, the innermost function's first: ``opt`` in a helper, ``optimizer_D`` outside.
    """

    def __init__(self) -> None:
        self._looks = 0
        self.optimizers: dict[int, list[str]] = {}
        self.params: dict[int, list[str]] = {}

    def wants(self, *, optimizer: int, params: int) -> bool:
        """Return whether something is without a name, and it is still worth looking."""
        if self._looks >= _MOST_LOOKS:
            return False
        nameless = params & ~sum(1 << number for number in self.params)
        return bool(nameless) or (optimizer >= 0 and optimizer not in self.optimizers)

    def look(self, frame: FrameType | None, numbers: dict[int, int], bits: Callable[[list[Tensor]], int]) -> None:
        """Look through the variables of a frame and its callers; ``numbers`` are those of optimizers, by id.

        bits: returns the bits of those parameters that are watched.
        """
        self._looks += 1
        for _ in range(_MOST_FRAMES):
            if (frame := user_frame(frame)) is None:
                return
            for name, thing in _things(frame):
                if isinstance(thing, Optimizer):
                    number = numbers.get(id(wrapped_optimizer(thing)))
                    known = self.optimizers.setdefault(number, []) if number is not None else None
                else:
                    bit = bits([thing])
                    known = self.params.setdefault(bit.bit_length() - 1, []) if bit else None
                if known is not None and name not in known and len(known) < _MOST_NAMES:
                    known.append(name)
            frame = frame.f_back

    def forget_params(self, params: int) -> None:
        """Forget the names of parameters whose numbers go to new ones."""
        self.params = {number: names for number, names in self.params.items() if not params >> number & 1}

    def optimizer(self, number: int) -> str:
        """Return the name of an optimizer, "" if none is known."""
        return _clearest(self.optimizers, number)

    def param(self, number: int) -> str:
        """Return the name of a parameter, "" if none is known."""
        return _clearest(self.params, number)


def wrapped_optimizer(optimizer: Optimizer) -> Optimizer:
    """Return the optimizer that a trainer's wrapper stands for, such as LightningAdam or AcceleratedOptimizer."""
    inner = getattr(optimizer, "optimizer", None)
    if isinstance(inner, Optimizer) and inner.param_groups is optimizer.param_groups:
        return inner
    return optimizer


def _clearest(names: dict[int, list[str]], number: int) -> str:
    """Return the first name of an object that no other one has, too; a loop's ``o`` only if there is no other."""
    own = sorted(names.get(number, []), key=lambda name: len(name) < _SHORT)
    alone = [name for name in own if sum(name in other for other in names.values()) == 1]
    return next(iter(alone or own), "")


def _things(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Yield optimizers and parameters that a function can name, with what it would write for them."""
    own = ((name, value) for name, value in variables(frame).items() if not name.startswith("_") and name not in _SHELL)
    waiting = deque((name, value, 0) for name, value in own)
    if frame.f_code.co_name != "<module>":
        used = frame.f_code.co_names
        waiting += [(name, frame.f_globals[name], 0) for name in used if name in frame.f_globals]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_THINGS:
        name, value, depth = waiting.popleft()
        if isinstance(value, (str, int, float, bytes, type, ModuleType)):
            continue
        if isinstance(value, nn.Module):
            yield from ((spelled(f"{name}.{inner}"), param) for inner, param in value.named_parameters())
        elif isinstance(value, Optimizer) or (isinstance(value, Tensor) and value.is_leaf and value.requires_grad):
            yield name, value
        if depth < _DEPTH and id(value) not in seen and not isinstance(value, (Tensor, Optimizer)):
            seen.add(id(value))
            waiting += [(inner, one, depth + 1) for inner, one in _inside(name, value)]


def spelled(name: str) -> str:
    """Return a name with dots as Python has it: ``net.blocks.0.weight`` is ``net.blocks[0].weight``."""
    return re.sub(r"\.(\d+)(?=[.\[]|$)", r"[\1]", name)


def _inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the elements of a container, and the attributes of an object of the learner's own."""
    if isinstance(value, dict):
        for key, one in list(value.items())[:_MOST_ELEMENTS]:
            if isinstance(key, (str, int)):
                yield f"{name}[{key!r}]", one
    elif isinstance(value, (list, tuple)):
        for number, one in enumerate(value[:_MOST_ELEMENTS]):
            yield f"{name}[{number}]", one
    elif isinstance(value, nn.Module):
        for path, part in value.named_modules():
            for key, one in vars(part).items():  # layers in a plain list are no parts that PyTorch knows of
                if isinstance(one, (list, tuple, dict)) and one and not key.startswith("_"):
                    yield spelled(".".join(filter(None, (name, path, key)))), one
    elif hasattr(value, "__dict__") and type(value).__module__.partition(".")[0] not in _OURS:
        for key, one in list(vars(value).items()):
            if not key.startswith("__"):
                yield f"{name}.{key}", one
