"""A loop's text run by plain ``exec``, with nothing of gradlab near it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..tasks import Task


def weights_after(loop: str, task: Task, **more: Any) -> Tensor:
    """Run a loop's text for one epoch on a fresh model of a task, and return the model's weights in one row.

    The text sees ``torch``, ``model``, ``loss_fn``, ``batches``, ``device`` and ``epochs``; ``more`` replaces some.
    """
    names: dict[str, Any] = {"torch": torch, "model": task.build(seed=0), "loss_fn": task.loss_fn}
    names |= {"batches": task.batches, "device": task.device, "epochs": 1} | more
    exec(loop, names)
    return torch.cat([param.detach().flatten() for param in names["model"].parameters()])
