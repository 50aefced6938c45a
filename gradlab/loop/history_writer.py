"""From tensors to the History: keeps an update's numbers on the device and writes them down some updates later.

Reading a number off a GPU makes the CPU wait for it, so losses and norms stay tensors until the slice of work is over.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from .. import _torch
from .history import History

_FLUSH_EVERY = 64
_FP16_VANISHES = 2.0**-25  # magnitudes up to this round to zero in fp16, whose smallest number is 2**-24 (IEEE 754)


class HistoryWriter:
    """Writes the history of one run of a model."""

    def __init__(self, model: nn.Module) -> None:
        """Start a new history; a model of two weights also gets its path written."""
        self.record = History()
        self._params = list(model.parameters())
        self.is_two_weights = sum(param.numel() for param in self._params) == 2
        self._norms: list[Tensor] = []
        self._rows: list[tuple[list[Tensor], list[Tensor], float, Tensor | None, bool]] = []
        self._written = 0
        self._note_path()

    def before_step(self, grads: list[Tensor]) -> None:
        """Note the norms of the gradients that a step is about to use."""
        self._norms = list(_torch.foreach_norm(grads)) if grads else []

    def updated(self, losses: list[Tensor], scale: float | None, skipped: bool) -> None:
        """Note one update: the losses of its micro-batches, and the loss scale, None without one."""
        underflow = None if scale is None else self._underflow()
        self._rows.append((losses, self._norms, math.nan if scale is None else scale, underflow, skipped))
        self._norms = []
        self.record.updates += 1
        self._note_path()
        if len(self._rows) >= _FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        """Write all that waits; this waits for the device."""
        for losses, norms, scale, underflow, skipped in self._rows:
            self._written += 1
            values = _floats(losses)
            loss = sum(value / len(values) for value in values) if values else None
            norm = math.hypot(*_floats(norms)) if norms else math.nan
            share = math.nan if underflow is None else float(underflow)
            self.record.write(self._written, loss, norm, scale, share, skipped=skipped)
        self._rows.clear()

    def _note_path(self) -> None:
        if self.is_two_weights:
            x, y = (value for param in self._params for value in param.detach().flatten().tolist())
            self.record.path.append(x=x, y=y)

    def _underflow(self) -> Tensor:
        """Share of the (unscaled) gradient's elements that are not zero but would be in fp16."""
        sizes = [param.grad.detach().to_dense().abs() for param in self._params if param.grad is not None]
        lost = [((size > 0) & (size <= _FP16_VANISHES)).sum() for size in sizes]
        return torch.stack(lost).sum() / max(1, sum(size.numel() for size in sizes)) if lost else torch.tensor(0.0)


def _floats(tensors: list[Tensor]) -> list[float]:
    if len(tensors) > 1 and tensors[0].is_cuda:  # one wait for all of them
        gathered: Any = torch.stack([tensor.float() for tensor in tensors]).tolist()
        return list(gathered)
    return [tensor.item() for tensor in tensors]
