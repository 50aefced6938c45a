"""What several exercises of notebook 06 share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch


def path(
    make: Callable[..., torch.optim.Optimizer],
    w: float,
    grads: Sequence[float | None],
    lrs: Sequence[float] | None = None,
    **settings: float,
) -> list[float]:
    """Return where an optimizer takes one weight, in double precision; ``lrs`` sets the lr of each update."""
    weight = torch.tensor([w], dtype=torch.float64, requires_grad=True)
    optimizer, reached = make([weight], **settings), []
    for update, grad in enumerate(grads):
        weight.grad = None if grad is None else torch.tensor([grad], dtype=torch.float64)
        if lrs is not None:
            optimizer.param_groups[0]["lr"] = lrs[update]
        optimizer.step()
        reached.append(weight.item())
    return reached
