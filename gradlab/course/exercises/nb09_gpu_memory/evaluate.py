"""The exercise ``evaluate``."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ....memory import Ledger
from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    rows, model = rng.randrange(20, 40), nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))
    batches = [(torch.randn(rows, 16), torch.randint(10, (rows,))) for _ in range(rng.randrange(8, 14))]
    return Case(model, batches, text=f"{len(batches)} batches of {rows} rows")


def reference(model: nn.Module, batches: Any) -> dict[str, object]:
    """Take all rows at once: the batches are of equal size."""
    x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    return {"mean loss": cross_entropy(model(x), y).item(), "kept for backward": "nothing"}


def observe(answer: Callable[..., object], model: nn.Module, batches: Any) -> dict[str, object]:
    """Run it on two batches and on all, and say in words what it keeps."""
    (_, few), (mean, most) = (kept(answer, model, some) for some in (batches[:2], batches))
    words = "nothing" if most == 0 else "one batch at a time" if most < 1.5 * few else "every batch"
    words += ", in eval mode" * (most > 0 and not model.training)
    words += ", but gradients stay off" * (not torch.is_grad_enabled())
    words += ", but there are gradients now" * any(p.grad is not None for p in model.parameters())
    torch.set_grad_enabled(True)
    if isinstance(mean, Tensor) and mean.numel() == 1:
        mean = mean.item()
    return {"mean loss": mean, "kept for backward": words}


def kept(answer: Callable[..., object], model: nn.Module, batches: Any) -> tuple[object, int]:
    """Return what an evaluation returns, and the most bytes that it keeps for backward()."""
    with Ledger(model, (), batches) as ledger:
        mean = answer(model, batches)
    return mean, max((point.high["activations"] for point in ledger.timeline), default=0)


def growing(model: nn.Module, batches: Any, item: bool = False) -> Any:
    total: Any = 0
    for x, y in batches:
        loss = cross_entropy(model(x), y)
        total = total + (loss.item() if item else loss)
    return total / len(batches)


def stays_off(model: nn.Module, batches: Any) -> Any:
    torch.set_grad_enabled(False)
    return growing(model, batches)


mended = torch.no_grad()(growing)

DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=observe,
    mistakes={
        "grows": growing,
        "one-batch": lambda model, batches: growing(model, batches, item=True),
        "eval-mode": lambda model, batches: growing(model.eval(), batches),
        "stays-off": stays_off,
        "sum": lambda model, batches: mended(model, batches) * len(batches),
        "last": lambda model, batches: mended(model, batches[-1:]),
        "last-share": lambda model, batches: mended(model, batches[-1:]) / len(batches),
    },
    plot_values=lambda value: None,
    rounds=2,
    seconds=10.0,  # it is run under a ledger, which is slow where many run at once
)
