"""The exercise ``bytes_after_step``."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..definition import Case, Definition

OUT = 64  # units of the layer that the bytes are counted on
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}


def case(rng: random.Random) -> Case:
    parameters = OUT * rng.randrange(40, 200)
    return Case(parameters, text=f"{parameters:,} parameters")


def reference(parameters: int) -> dict[str, int]:
    """Let each optimizer step once, and add up the bytes of all tensors that there are then."""
    return {name: bytes_after(make, nn.Linear(parameters // OUT - 1, OUT)) for name, make in OPTIMIZERS.items()}


def bytes_after(make: Callable[..., torch.optim.Optimizer], model: nn.Module) -> int:
    optimizer = make(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    tensors = [part for state in optimizer.state.values() for part in state.values() if isinstance(part, Tensor)]
    tensors += [part for parameter in model.parameters() for part in (parameter, parameter.grad) if part is not None]
    return sum(part.nbytes for part in tensors)


def observe(answer: Callable[[int, str], object], parameters: int) -> dict[str, object]:
    return {name: answer(parameters, name) for name in OPTIMIZERS}


def numbers(sgd: int = 2, momentum: int = 3, adamw: int = 4, size: int = 4) -> Callable[[int, str], int]:
    """Return an answer that counts this many numbers a parameter, of ``size`` bytes each."""
    kept = {"sgd": sgd, "momentum": momentum, "adamw": adamw}
    return lambda parameters, optimizer: parameters * kept[optimizer] * size


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=observe,
    mistakes={
        "numbers": numbers(size=1),
        "two-bytes": numbers(size=2),
        "bits": numbers(size=32),
        "no-gradients": numbers(1, 2, 3),
        "no-state": numbers(2, 2, 2),
        "one-average": numbers(adamw=3),
        "two-buffers": numbers(momentum=4),
        "sgd-keeps": numbers(sgd=3),
    },
    rounds=4,
    relative=0.01,  # AdamW also counts its steps, a number for each tensor
    axes=("", "bytes after the step"),
)
