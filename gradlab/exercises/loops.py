"""What several exercises share: letting a learner's training loop run, and reading off what became of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def weights(model: nn.Module) -> Tensor:
    """Return all weights of a model in one row, as a copy."""
    return torch.cat([parameter.detach().reshape(-1).clone() for parameter in model.parameters()])


def trained(loop: Callable[..., Any], model: nn.Module, *arguments: Any) -> Tensor:
    """Let ``loop(model, *arguments)`` run and return the model's weights after it."""
    loop(model, *arguments)
    return weights(model)
