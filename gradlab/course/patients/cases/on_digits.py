"""What patients that read digits have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from .... import tasks


def digits_names() -> dict[str, Any]:
    """Return what such a loop is given: ``build()`` makes the network."""
    task = tasks.digits(device="cpu")
    batches = [(x.clone(), y.clone()) for x, y in task.batches]
    return {"build": lambda: task.build(seed=0), "batches": batches, "loss_fn": task.loss_fn, "device": "cpu"}


def held_out_digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Return 297 pictures that no batch contains, with their digits."""
    held_out = tasks.digits(device="cpu").held_out
    assert held_out is not None
    return held_out


def loss_on_held_out(name: str = "model") -> Callable[[Mapping[str, Any]], float]:
    """Return what computes the loss of the network of this name on them."""

    def loss(names: Mapping[str, Any]) -> float:
        x, y = held_out_digits()
        with torch.no_grad():
            return float(torch.nn.functional.cross_entropy(names[name](x), y))

    return loss
