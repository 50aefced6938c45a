"""What several exercises of notebook 07 share."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def joined(window: Iterable[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Return a window as the one large batch that it stands for."""
    return torch.cat([x for x, _ in window]), torch.cat([y for _, y in window])
