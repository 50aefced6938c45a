"""The weights and gradients of a training loop, for the exercises of several notebooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def all_weights(*models: nn.Module) -> Tensor:
    """Copy all weights of a model, or of several, into one row."""
    return torch.cat([weight.detach().reshape(-1).clone() for model in models for weight in model.parameters()])


def trained(loop: Callable[..., Any], *arguments: Any) -> Tensor:
    """Run ``loop(*arguments)`` and return the weights of the models among the arguments after it."""
    loop(*arguments)
    return all_weights(*(argument for argument in arguments if isinstance(argument, nn.Module)))


def gradient(loss: Tensor, model: nn.Module) -> Tensor:
    """Compute the gradient of a loss in one row, as ``all_weights`` does; .grad stays as it is."""
    return torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, list(model.parameters()))])
