"""What several exercises of notebook 06 share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def walked(make: Callable[[list[torch.Tensor]], torch.optim.Optimizer], w: float, grads: Any, lrs: Any = None) -> Any:
    """Return where an optimizer of torch.optim takes one weight, in double precision."""
    weight = torch.tensor([w], dtype=torch.float64, requires_grad=True)
    optimizer, walked = make([weight]), []
    for at, grad in enumerate(grads):
        weight.grad = None if grad is None else torch.tensor([grad], dtype=torch.float64)
        if lrs is not None:
            optimizer.param_groups[0]["lr"] = lrs[at]
        optimizer.step()
        walked.append(weight.item())
    return walked
