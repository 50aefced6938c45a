"""Training loops of several notebooks' exercises: the learner's runs, and typical wrong ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def all_weights(*models: nn.Module) -> Tensor:
    """Copy all weights of a model, or of several, into one row."""
    return torch.cat([weight.detach().reshape(-1).clone() for model in models for weight in model.parameters()])


def trained(loop: Callable[..., Any], *arguments: Any) -> Tensor:
    """Let ``loop(*arguments)`` run and return the weights of the models among the arguments after it."""
    loop(*arguments)
    return all_weights(*(argument for argument in arguments if isinstance(argument, nn.Module)))


def gradient(loss: Tensor, model: nn.Module) -> Tensor:
    """Compute the gradient of a loss in one row, as ``all_weights`` does, with autograd.grad: .grad stays as it is."""
    return torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, list(model.parameters()))])


def sgd(*, last: bool = True, **changes: Any) -> Callable[..., None]:
    """Make a training loop with an update for each window of n batches, by default of one.

    What makes it wrong: the window left over at the end is dropped, or what ``window_update`` takes.
    """

    def loop(model: nn.Module, loss_fn: Any, batches: Any, lr: float, n: int = 1, max_norm: float = math.inf) -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        end = len(batches) if last else len(batches) // n * n
        for start in range(0, end, n):
            window_update(model, loss_fn, batches[start : start + n], optimizer, max_norm, **changes)

    return loop


def window_update(
    model: nn.Module,
    loss_fn: Any,
    window: Any,
    optimizer: torch.optim.Optimizer,
    max_norm: float,
    *,
    clear: str = "window",
    divide_by: int | None = None,
    clip: str = "window",
) -> list[float]:
    """Make an update on the mean loss of a window and return the losses.

    What makes it wrong: the loss is divided by another number, it is cleared or clipped each "batch" or "never".
    """
    losses = []
    for i, (x, y) in enumerate(window, 1):
        if clear == "batch" or (clear == "window" and i == 1):
            optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        (loss / (divide_by or len(window))).backward()
        losses.append(loss.item())
        if clip == "batch" or (clip == "window" and i == len(window)):
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return losses
