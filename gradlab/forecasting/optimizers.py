"""How a forecast's optimizer is run: the recipe's own in one of PyTorch's ways, one with small states, or a factory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

WAYS = {"foreach": "foreach=True", "for-loop": "foreach=False", "fused": "fused=True"}
"""PyTorch's ways of running one optimizer, with the argument that asks for each: all parameters at once, which needs
passing results as large as the weights; one after another; in one kernel, without passing results. See "Algorithms" in
the documentation of torch.optim."""

_BLOCK = 256
_SMALLEST = 4096


class AdamW8bit(torch.optim.Optimizer):
    """AdamW whose states take the bytes that those of ``bitsandbytes.optim.AdamW8bit`` take; it moves no weight.

    A parameter of 4,096 elements or more has two states of one byte an element and, for each 256 elements, two scales
    of four bytes; a smaller one has states of four bytes an element. Source: Dettmers et al., "8-bit Optimizers via
    Block-wise Quantization", arXiv 2110.02861; ``bitsandbytes/optim/optimizer.py`` (``min_8bit_size=4096``,
    ``blocksize = 256``).
    """

    def __init__(self, params: Iterable[Tensor], lr: float = 1e-3) -> None:
        super().__init__(params, {"lr": lr})

    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # a forecast gives no closure
        """Make the states that are not there yet; the update itself needs nothing else, in one kernel a parameter."""
        for group in self.param_groups:
            for parameter in (p for p in group["params"] if p.grad is not None and not self.state[p]):
                small = parameter.numel() < _SMALLEST
                for n in ("1", "2"):
                    dtype = torch.float32 if small else torch.uint8
                    self.state[parameter][f"state{n}"] = torch.zeros(parameter.shape, dtype=dtype)
                    if not small:
                        self.state[parameter][f"absmax{n}"] = torch.zeros(-(-parameter.numel() // _BLOCK))


OTHER_OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "adamw-8bit": AdamW8bit,
    "adafactor": torch.optim.Adafactor,
}
"""Optimizers that a Recipe does not have, by name."""


def check_optimizer(optimizer: Any) -> None:
    """Raise ValueError or TypeError for what is neither a way, nor a name, nor a factory, nor None."""
    names = ", ".join(map(repr, (*WAYS, *OTHER_OPTIMIZERS)))
    allowed = f"one of {names}, a function (parameters) -> torch.optim.Optimizer, or None"
    if isinstance(optimizer, str):
        if optimizer not in WAYS and optimizer not in OTHER_OPTIMIZERS:
            raise ValueError(f"forecast: optimizer must be {allowed}, got {optimizer!r}")
    elif optimizer is not None and (not callable(optimizer) or isinstance(optimizer, torch.optim.Optimizer)):
        raise TypeError(f"forecast: optimizer must be {allowed}, got {optimizer!r}")


def factory_of(optimizer: Any) -> Callable[[Any], Any] | None:
    """Return what makes the optimizer from the parameters; None where it is the recipe's own."""
    return OTHER_OPTIMIZERS.get(optimizer) if isinstance(optimizer, str) else optimizer
