"""Helpers that read the weights and gradients of a training loop, for the exercises of several notebooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def all_weights(*models: nn.Module) -> Tensor:
    """Return a copy of all weights of one or more models as one 1-D tensor."""
    return torch.cat([weight.detach().reshape(-1).clone() for model in models for weight in model.parameters()])


def trained(loop: Callable[..., Any], *arguments: Any) -> Tensor:
    """Run ``loop(*arguments)`` and return the final weights of the models among ``arguments`` as one 1-D tensor."""
    loop(*arguments)
    return all_weights(*(argument for argument in arguments if isinstance(argument, nn.Module)))


def gradient(loss: Tensor, model: nn.Module) -> Tensor:
    """Return the gradient of ``loss`` as a 1-D tensor, in the order of ``all_weights``, without changing ``.grad``."""
    return torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, list(model.parameters()))])
