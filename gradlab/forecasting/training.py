"""Training: what a forecast is told of it beside the model, and the loop's text that follows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch

from .._checks import on_off
from ..loop import Recipe
from .optimizers import WAYS, check_optimizer, factory_of

WEIGHT_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ZERO_GRAD_AT = ("before forward", "before backward", "after step")
_UPDATE = """\
made = setup(model)
for epoch in range(epochs):
    for batch in batches:
        update(model, made, batch)
"""


@dataclass(frozen=True)
class Training:
    """How a model is trained; each field is an argument of ``forecast`` of the same name."""

    recipe: Recipe = Recipe()  # noqa: RUF009 - frozen
    checkpoint: bool = False
    device: str = "cpu"
    dtype: str | None = None
    """Of the weights; None leaves them as they are."""
    optimizer: Any = None
    zero_grad_at: str = ZERO_GRAD_AT[0]

    def __post_init__(self) -> None:
        """Check each."""
        if not isinstance(self.recipe, Recipe):
            raise TypeError(f"forecast: recipe must be a gradlab.Recipe, got {self.recipe!r}")
        on_off("forecast: checkpoint", self.checkpoint)
        if self.dtype is not None and self.dtype not in WEIGHT_TYPES:
            raise ValueError(
                f"forecast: dtype must be one of {', '.join(map(repr, WEIGHT_TYPES))}, or None, got {self.dtype!r}"
            )
        check_optimizer(self.optimizer)
        if self.zero_grad_at not in ZERO_GRAD_AT:
            allowed = ", ".join(map(repr, ZERO_GRAD_AT))
            raise ValueError(f"forecast: zero_grad_at must be one of {allowed}, got {self.zero_grad_at!r}")
        if self.zero_grad_at == "before backward" and self.recipe.accumulate > 1:
            raise ValueError(
                "forecast: zero_grad_at='before backward' would clear each micro-batch of the window, got "
                f"accumulate={self.recipe.accumulate}; use accumulate=1, or another place"
            )

    @property
    def at_once(self) -> bool:
        """Whether the recipe's own optimizer updates all parameters at once, as PyTorch does on a GPU."""
        return self.optimizer == "foreach" or (self.optimizer is None and self.device == "cuda")

    def source(self) -> str:
        """Return the loop's text: the recipe's, with its optimizer and ``zero_grad`` where they were asked for."""
        lines = self.recipe.source().splitlines()
        if factory_of(self.optimizer) is not None:
            lines[0] = "optimizer = make_optimizer(model.parameters())"
        elif self.optimizer in WAYS:
            lines[0] = f"{lines[0][:-1]}, {WAYS[self.optimizer]})"
        if self.recipe.zero_grad and self.zero_grad_at != ZERO_GRAD_AT[0]:
            clear = lines.pop(next(i for i, line in enumerate(lines) if "optimizer.zero_grad" in line))
            at = len(lines)
            if self.zero_grad_at == "before backward":
                at = next(i for i, line in enumerate(lines) if re.search(r"\.backward\(", line))
            lines.insert(at, clear)
        return "\n".join(lines) + "\n"

    def update_source(self) -> str:
        """Return the text that runs an update of the reader's own."""
        return _UPDATE

    def words(self) -> list[str]:
        """Return what differs from the usual, in a few words each."""
        own = self.optimizer if isinstance(self.optimizer, str) else getattr(self.optimizer, "__name__", "its own")
        optimizer = self.recipe.optimizer if self.optimizer is None else own
        if self.optimizer in WAYS:
            optimizer = f"{self.recipe.optimizer} ({own})"
        words = [optimizer, f"AMP {self.recipe.amp}", f"window {self.recipe.accumulate}"]
        words += [f"weights in {self.dtype}"] * (self.dtype is not None)
        words += ["zero_grad off"] * (not self.recipe.zero_grad) + ["set_to_none off"] * (not self.recipe.set_to_none)
        words += [f"zero_grad {self.zero_grad_at}"] * (self.zero_grad_at != ZERO_GRAD_AT[0])
        return [*words, *["checkpointing"] * self.checkpoint]
