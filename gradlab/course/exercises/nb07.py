"""The exercises of notebook 07."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from .checking import Case, Definition, variant
from .loops import all_weights, gradient, trained

Window = list[tuple[Tensor, Tensor]]


def by_tokens_case(rng: random.Random) -> Case:
    """Return a small model of characters, and three or four micro-batches of unequal length, padded."""
    model, window = nn.Sequential(nn.Embedding(6, 3), nn.Linear(3, 6)), []
    for i in range(rng.randint(3, 4)):
        lengths = [rng.randint(2, 4) + 6 * (i % 2), rng.randint(5, 9) + 9 * (i % 2)]
        x = torch.randint(6, (len(lengths), max(lengths)))
        y = torch.randint(6, x.shape)
        for row, length in enumerate(lengths):
            y[row, length:] = -100
        window.append((x, y))
    counts = ", ".join(str(int((y != -100).sum())) for _, y in window)
    return (model, window), f"micro-batches of {counts} characters: this is .grad"


def by_tokens_observe(answer: Callable[..., object], model: nn.Module, window: Window) -> Tensor:
    """Return what stands in .grad afterwards."""
    answer(model, window)
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return torch.cat([gradient.detach().flatten() for gradient in gradients])


by_tokens = Definition(
    case=by_tokens_case,
    observe=by_tokens_observe,
    mistakes={
        "mean-of-means": variant("by_tokens", ('"sum"', '"mean"'), ("loss / total", "loss / len(window)")),
        "sum": variant("by_tokens", ("loss / total", "loss")),
        "counts-padding": variant("by_tokens", ("(y != -100).sum()", "y.numel()")),
    },
    rounds=6,
)


def accumulated_case(rng: random.Random) -> Case:
    """Return batches of one size that fill two windows and part of a third."""
    n = rng.randint(3, 5)
    batches = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(2 * n + rng.randint(2, n - 1))]
    text = f"{len(batches)} batches, n={n}: these are the weights afterwards"
    return (nn.Linear(3, 1), mse_loss, batches, rng.uniform(0.05, 0.15), n), text


accumulated = Definition(
    case=accumulated_case,
    observe=trained,
    mistakes={
        "drops-last": variant("accumulated", ("len(batches)", "len(batches) // n * n")),
        "full-size": variant("accumulated", ("len(window)", "n")),
        "never-clears": variant("accumulated", ("optimizer.zero_grad()", "pass")),
        "clears-inside": variant("accumulated", ("in window:", "in window:\n            optimizer.zero_grad()")),
    },
    rounds=5,
)


def one_update_case(rng: random.Random) -> Case:
    """Return a model with something in .grad, and a threshold below or above the norm of the window's gradient."""
    model = nn.Linear(4, 2)
    window = [(torch.randn(3, 4), 3 * torch.randn(3, 2)) for _ in range(rng.randint(3, 5))]
    mean_loss = torch.stack([mse_loss(model(x), y) for x, y in window]).mean()
    norm = gradient(mean_loss, model).norm().item()
    max_norm = norm * (rng.uniform(0.3, 0.6) if rng.random() < 0.5 else rng.uniform(1.2, 2.0))
    mse_loss(model(torch.randn(3, 4)), torch.randn(3, 2)).backward()
    optimizer = torch.optim.SGD(model.parameters(), lr=rng.uniform(0.05, 0.15))
    text = f"a window of {len(window)} and max_norm={max_norm:.3f}"
    return (model, mse_loss, window, optimizer, max_norm), text


def one_update_observe(answer: Callable[..., object], model: nn.Module, *arguments: object) -> dict[str, object]:
    loss = answer(model, *arguments)
    return {"weights": all_weights(model), "loss": loss}


one_update = Definition(
    case=one_update_case,
    observe=one_update_observe,
    mistakes={
        "clips-inside": variant("one_update", ("    nn.utils.clip", "        nn.utils.clip")),
        "clips-nothing": variant("one_update", ("nn.utils.clip_grad_norm_(model.parameters(), max_norm)", "pass")),
        "does-not-clear": variant("one_update", ("optimizer.zero_grad()", "pass")),
        "returns-a-share": variant("one_update", ("total += loss.item()", "total = loss.item()")),
    },
    rounds=16,  # the threshold is too high to matter in half of the cases; both kinds have to come up
)
