"""Training loops of several notebooks' exercises: the learner's runs, the right one by hand, and typical wrong ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


def linear_regression(rng: random.Random, batches: int) -> tuple[nn.Module, Callable[..., Tensor], Any, float]:
    """Make what a training loop takes: a model of three inputs, a loss function, random batches, and an lr."""
    pairs = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(batches)]
    return nn.Linear(3, 1), nn.functional.mse_loss, pairs, rng.uniform(0.05, 0.2)


def all_weights(*models: nn.Module) -> Tensor:
    """Copy all weights of a model, or of several, into one row."""
    return torch.cat([weight.detach().reshape(-1).clone() for model in models for weight in model.parameters()])


def trained(loop: Callable[..., Any], model: nn.Module, *arguments: Any) -> Tensor:
    """Let ``loop(model, *arguments)`` run and return the model's weights after it."""
    loop(model, *arguments)
    return all_weights(model)


def gradient(loss: Tensor, model: nn.Module) -> Tensor:
    """Compute the gradient of a loss in one row, as ``all_weights`` does, with autograd.grad: .grad stays as it is."""
    return torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, list(model.parameters()))])


def mean_loss(model: nn.Module, loss_fn: Callable[..., Tensor], window: Any) -> Tensor:
    """Compute the mean loss of the batches of a window."""
    return torch.stack([loss_fn(model(x), y) for x, y in window]).mean()


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


def trained_by_hand(
    model: nn.Module,
    loss_fn: Callable[..., Tensor],
    batches: Any,
    lr: float,
    window: int = 1,
    max_norm: float = math.inf,
    decay: float = 1.0,
) -> Tensor:
    """Return the weights after one epoch of updates by hand, each on the mean loss of its window."""
    for update, start in enumerate(range(0, len(batches), window)):
        loss = mean_loss(model, loss_fn, batches[start : start + window])
        sgd_step_by_hand(loss, model.parameters(), lr * decay**update, max_norm)
    return all_weights(model)


def stand_still(*arguments: Any) -> None:
    """Train nothing: the mistake of a loop whose weights do not move."""


def one_step(model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> None:
    """Make one step for the whole epoch, with the sum of all gradients: a typical mistake."""
    sgd(divide_by=1)(model, loss_fn, batches, lr, len(batches))


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
