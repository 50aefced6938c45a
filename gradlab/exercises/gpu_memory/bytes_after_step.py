"""The exercise ``bytes_after_step``: after the step."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..base import Exercise, Mistake

_OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}
_OUT = 64  # units of the layer that the bytes are counted on


def _numbers(sgd: int = 2, momentum: int = 3, adamw: int = 4, size: float = 4) -> Callable[[int, str], float]:
    """Return an answer that counts so many numbers a parameter, of so many bytes each."""
    kept = {"sgd": sgd, "momentum": momentum, "adamw": adamw}
    return lambda parameters, optimizer: parameters * kept[optimizer] * size


class BytesAfterStep(Exercise):
    """What is alive once an update is over."""

    name = "bytes_after_step"
    notebook = "09_gpu_memory"
    title = "After the step"
    level, minutes = "easy", 5
    spec = (
        "Write `bytes_after_step(parameters, optimizer)`: the bytes of weights, gradients and optimizer state just "
        'after `step()`, all in float32, for a model with so many parameters; `optimizer` is `"sgd"`, `"momentum"` '
        'or `"adamw"`.'
    )
    stub = """
def bytes_after_step(parameters, optimizer):
    return None  # your answer
"""
    hints = (
        "How many numbers does each keep for one weight? Do not forget the weight itself, nor its gradient.",
        "SGD keeps nothing of its own, momentum one number a weight, AdamW two.",
        "A float32 takes 4 bytes, so it is 4 times the parameters times 2, 3 or 4.",
    )
    mistakes = (
        Mistake("numbers", "That is how many numbers there are. A float32 takes 4 bytes.", _numbers(size=1)),
        Mistake("two-bytes", "Float32 takes 4 bytes a number, not 2.", _numbers(size=2)),
        Mistake("bits", "4 bytes are 32 bits; bytes are wanted.", _numbers(size=32)),
        Mistake("no-gradients", "The gradients are missing: after `step()` they are still there.", _numbers(1, 2, 3)),
        Mistake("no-state", "The optimizer's state is missing.", _numbers(2, 2, 2)),
        Mistake("one-average", "AdamW keeps two numbers a weight.", _numbers(adamw=3)),
        Mistake("two-buffers", "Momentum keeps one number a weight.", _numbers(momentum=4)),
        Mistake("sgd-keeps", "Plain SGD keeps nothing.", _numbers(sgd=3)),
    )
    rounds = 4
    relative = 0.01  # AdamW also counts its steps, a number for each tensor
    axes = ("", "bytes after the step")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a number of parameters."""
        return (_OUT * dice.randrange(40, 200),)

    def right(self, parameters: int) -> Any:
        """Let each optimizer step once, and add up the bytes of all tensors that there are then."""
        return {name: _alive(nn.Linear(parameters // _OUT - 1, _OUT), make) for name, make in _OPTIMIZERS.items()}

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Ask for all three optimizers."""
        return {name: answer(*arguments, name) for name in _OPTIMIZERS}

    def told(self, *arguments: Any) -> str:
        """Say how many."""
        return f"{arguments[0]:,} parameters"


def _alive(model: nn.Module, make: Callable[[Any], torch.optim.Optimizer]) -> int:
    optimizer = make(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    kept = [part for state in optimizer.state.values() for part in state.values() if isinstance(part, Tensor)]
    both = [part for parameter in model.parameters() for part in (parameter, parameter.grad) if part is not None]
    return sum(part.nbytes for part in (*both, *kept))
