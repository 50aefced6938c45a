"""What a GPU holds beside the tensors: workspaces of its kernels, what the allocator reserves, and CUDA's context."""

from __future__ import annotations

import math
from dataclasses import dataclass

WORKSPACE = 4096 * 1024 * 2 + 16 * 1024 * 8
"""Bytes that cuBLAS takes of the allocator for each handle and stream, before Hopper: 8,519,680.

``getChosenWorkspaceSize`` in ``aten/src/ATen/cuda/CublasHandlePool.cpp``; CUBLAS_WORKSPACE_CONFIG sets another.
"""
WORKSPACE_HOPPER = 4096 * 1024 * 8
"""The same from compute capability 9.0 on."""
HANDLES = 2
"""The thread that runs forward has a handle of its own, and so has autograd's."""

RESERVE_MARGIN = 0.15
"""What the allocator reserves above what is allocated at the peak, as a share of it.

Of 17 published pairs of both, the median is 1.16 (ten of transformers and speech: 1.11); of the ten figures of reserved
memory in ``tests/forecasting/published.toml`` none is above 1.15 times our forecast of allocated. A run that would not
fit gives back what it does not use and tries again: 21 out-of-memory messages name a median of 1.04.
"""
CUDA_CONTEXT = 650_000_000
"""Bytes of CUDA's context, before any tensor: what out-of-memory messages name beyond PyTorch's own.

0.1 GiB on a T4, 0.3 on an RTX 3090 or A10G, 0.5 on an RTX 4090, L40S or A100, 0.66 on an H100; the highest is taken.
"""


@dataclass(frozen=True)
class Need:
    """Bytes that a training takes of a card."""

    tensors: int
    """What PyTorch's tensors ask for at the peak."""
    workspaces: int
    """What cuBLAS takes of the allocator."""
    margin: float
    """What the allocator reserves above both, as a share."""
    cuda_context: int
    """What CUDA takes for itself, outside of the allocator."""

    @property
    def allocated(self) -> int:
        """Bytes that ``torch.cuda.max_memory_allocated()`` would tell."""
        return self.tensors + self.workspaces

    @property
    def reserved(self) -> int:
        """Bytes that ``torch.cuda.max_memory_reserved()`` would likely tell."""
        return math.ceil(self.allocated * (1 + self.margin))

    @property
    def total(self) -> int:
        """Bytes that the card must have."""
        return self.reserved + self.cuda_context

    def room(self, usable: int) -> int:
        """Return the most bytes of tensors with which the total stays within ``usable``."""
        spare = usable - self.cuda_context
        most = int(spare / (1 + self.margin)) + 1
        while math.ceil(most * (1 + self.margin)) > spare:
            most -= 1
        return most - self.workspaces


def workspaces(capability: tuple[int, int] | None) -> int:
    """Return the bytes of cuBLAS' workspaces on a card of this compute capability; None is one before Hopper."""
    return HANDLES * (WORKSPACE_HOPPER if capability is not None and capability >= (9, 0) else WORKSPACE)
