"""The settings of a forecast besides the model, and an optimizer with states of one byte per element."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .._checks import on_off, one_of
from ..loop import Recipe

WEIGHT_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
OTHER_OPTIMIZERS = ("adamw-8bit",)
"""The names of optimizers that ``forecast`` accepts and a Recipe does not."""
_BLOCK_ELEMENTS = 256
_MIN_8BIT_ELEMENTS = 4096


class AdamW8bit(torch.optim.Optimizer):
    """A substitute for ``bitsandbytes.optim.AdamW8bit`` that has states of the same sizes and changes no weights.

    A parameter of 4,096 elements or more has two states of one byte per element, and two scales of four bytes per 256
    elements; a smaller parameter has two states of four bytes per element. Source: Dettmers et al., "8-bit Optimizers
    via Block-wise Quantization", arXiv 2110.02861; ``bitsandbytes/optim/optimizer.py`` (``min_8bit_size=4096``,
    ``blocksize = 256``).
    """

    def __init__(self, params: Iterable[Tensor], lr: float = 1e-3) -> None:
        super().__init__(params, {"lr": lr})

    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # a forecast passes no closure
        """Create missing states only, because a real update runs one kernel per parameter and needs no other memory."""
        for group in self.param_groups:
            for parameter in (p for p in group["params"] if p.grad is not None and not self.state[p]):
                small = parameter.numel() < _MIN_8BIT_ELEMENTS
                dtype = torch.float32 if small else torch.uint8
                for n in ("1", "2"):
                    self.state[parameter][f"state{n}"] = torch.zeros(parameter.shape, dtype=dtype)
                    if not small:
                        self.state[parameter][f"absmax{n}"] = torch.zeros(-(-parameter.numel() // _BLOCK_ELEMENTS))


@dataclass(frozen=True)
class Training:
    """The settings of a training run; each field is the argument of ``forecast`` with the same name."""

    recipe: Recipe = Recipe()  # noqa: RUF009 - frozen
    checkpoint: bool = False
    device: str = "cpu"
    dtype: str | None = None
    optimizer: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.recipe, Recipe):
            raise TypeError(f"forecast: recipe must be a gradlab.Recipe, got {self.recipe!r}")
        on_off("forecast: checkpoint", self.checkpoint)
        one_of("forecast: device", self.device, ("cpu", "cuda"), kind=ValueError)
        if self.dtype is not None:
            one_of("forecast: dtype", self.dtype, WEIGHT_TYPES, kind=ValueError)
        if self.optimizer is not None:
            one_of("forecast: optimizer", self.optimizer, OTHER_OPTIMIZERS)

    @property
    def uses_foreach(self) -> bool:
        """Whether the optimizer updates all parameters at once, PyTorch's default on a GPU.

        Such updates need temporary results as large as the weights ("Algorithms" in the documentation of torch.optim).
        """
        return self.optimizer is None and self.device == "cuda"

    def source(self, batch: Any = None) -> str:
        """Return the source of the recipe's loop for batches like ``batch``, with the chosen optimizer."""
        source = self.recipe.source(batch)
        if self.optimizer is None:
            return source
        return "optimizer = AdamW8bit(model.parameters())\n" + source.partition("\n")[2]

    def summary(self) -> list[str]:
        """Return phrases for the optimizer, AMP, the accumulated batches, and other settings not at their default."""
        recipe = self.recipe
        parts = [self.optimizer or recipe.optimizer, f"AMP {recipe.amp}", f"window {recipe.accumulate}"]
        parts += [f"weights in {self.dtype}"] * (self.dtype is not None)
        parts += ["zero_grad off"] * (not recipe.zero_grad) + ["set_to_none off"] * (not recipe.set_to_none)
        return [*parts, *["checkpointing"] * self.checkpoint]
