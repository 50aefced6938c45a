"""Looking changes nothing: evaluate a model beside its training without leaving a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .._process import preserving_rng


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model in evaluation mode, without gradients and with its random numbers set aside; undo all of it after."""
    modes = [(module, module.training) for module in model.modules()]
    on_gpu = any(parameter.is_cuda for parameter in model.parameters())
    try:
        model.eval()
        with torch.no_grad(), preserving_rng(cuda=on_gpu):
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def loss_at(model: nn.Module, weights: Mapping[str, Tensor], loss_fn: Any, x: Tensor, y: Tensor) -> float:
    """Return the loss of a batch under other weights; the model's own stay where they are."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    output = torch.func.functional_call(model, {**buffers, **weights}, (x,))
    return float(loss_fn(output, y))
