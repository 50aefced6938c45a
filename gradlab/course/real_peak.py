"""What a recipe's own loop takes when it is run for real, to hold a forecast against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .._process import lock, preserving_rng
from ..loop import Program, Recipe
from ..memory import Ledger


def real_peak(
    model: nn.Module,
    recipe: Recipe,
    batches: list[tuple[Tensor, Tensor]],
    loss_fn: Callable[[Any, Any], Tensor],
    *,
    kernels: bool = False,
) -> int:
    """Train ``model`` by the text of a recipe for two epochs of ``batches``; return the most bytes alive at one moment.

    ``kernels=True`` also counts what CPU kernels take for themselves, as the allocator sees it; see ``Ledger``. Raises
    TypeError if ``recipe`` is no Recipe, ValueError if there are no batches.
    """
    if not isinstance(recipe, Recipe):
        raise TypeError(f"real_peak: recipe must be a gradlab.Recipe, got {recipe!r}")
    if not batches:
        raise ValueError("real_peak: batches must hold one batch or more, got none")
    program = Program(recipe.source())
    device = str(next(model.parameters()).device.type)
    names: dict[str, Any] = {"torch": torch, "model": model, "loss_fn": loss_fn, "batches": batches}
    names |= {"device": device, "epochs": 2}
    with lock, preserving_rng(cuda=device == "cuda"), torch.enable_grad():
        for _ in program.setup(names):
            pass
        with Ledger(model, [names["optimizer"]], batches, kernels=kernels) as ledger:
            for _ in program.loop(names):
                pass
    return ledger.peak
