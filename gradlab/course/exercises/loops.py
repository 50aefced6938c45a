"""What several exercises share: letting a learner's training loop run, and reading off what became of the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


def all_weights(model: nn.Module) -> Tensor:
    """Return all weights of a model in one row, as a copy."""
    return torch.cat([parameter.detach().reshape(-1).clone() for parameter in model.parameters()])


def trained(loop: Callable[..., Any], model: nn.Module, *arguments: Any) -> Tensor:
    """Let ``loop(model, *arguments)`` run and return the model's weights after it."""
    loop(model, *arguments)
    return all_weights(model)


def gradient(loss: Tensor, model: nn.Module) -> Tensor:
    """Return the gradient of a loss in one row, as ``all_weights`` does, from autograd.grad: .grad stays as it is."""
    return torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, list(model.parameters()))])


def sgd_step_by_hand(loss: Tensor, parameters: Iterable[Tensor], lr: float, max_norm: float = math.inf) -> None:
    """Make one update of plain SGD by hand, clipped to ``max_norm`` in the way that clip_grad_norm_ documents.

    The gradients are from autograd.grad, which never touches .grad: no .grad, no optimizer.
    """
    parameters = list(parameters)
    gradients = torch.autograd.grad(loss, parameters)
    norm = float(torch.cat([part.reshape(-1) for part in gradients]).norm())
    with torch.no_grad():
        for parameter, part in zip(parameters, gradients, strict=True):
            parameter.sub_(lr * min(1.0, max_norm / (norm + 1e-6)) * part)


def sgd(
    *, clear: bool = True, step: str = "batch", skip: int = 0, optimizer: Callable[..., Any] = torch.optim.SGD
) -> Callable[..., None]:
    """Return a training loop: right, or without clearing, with a step an epoch or never, without the last batches."""

    def loop(model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> None:
        made = optimizer(model.parameters(), lr=lr)
        for x, y in batches[: len(batches) - skip]:
            if clear:
                made.zero_grad()
            loss_fn(model(x), y).backward()
            if step == "batch":
                made.step()
        if step == "epoch":
            made.step()

    return loop
