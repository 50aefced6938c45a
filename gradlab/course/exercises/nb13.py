"""The checks of the exercises in notebook 13; ``nb13.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader

from .checking import Case, Definition, TroubleError, variant
from .loops import all_weights, trained

CALLS = ("zero_grad", "forward", "backward", "unscale_", "clip", "scaler.step", "scaler.update", "scheduler.step")
MAX_NORM = 0.05  # so small that clipping shortens every gradient in this exercise


def calls_in_order_case(rng: random.Random) -> Case:
    batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(3)]
    return (nn.Linear(3, 1), batches, rng.uniform(0.5, 2.0)), "the weights after three updates"


def calls_in_order_observe(answer: object, model: nn.Module, batches: Any, lr: float) -> Tensor:
    if not isinstance(answer, (list, tuple)) or sorted(map(str, answer)) != sorted(CALLS):
        raise TroubleError(f"The list must hold each of these once: {', '.join(CALLS)}")
    with warnings.catch_warnings(action="ignore"):  # PyTorch warns if a scheduler steps before its optimizer
        run(answer, model, batches, lr)
    return all_weights(model)


def run(order: Sequence[str], model: nn.Module, batches: Any, lr: float) -> None:
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=lr), torch.amp.GradScaler("cpu", init_scale=64.0)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    losses: list[Tensor] = []
    following = iter(batches)

    def forward() -> None:
        x, y = next(following)
        losses.append(mse_loss(model(x), y))

    calls: dict[str, Callable[[], object]] = {
        "zero_grad": optimizer.zero_grad,
        "forward": forward,
        "backward": lambda: scaler.scale(losses[-1]).backward(),
        "unscale_": lambda: scaler.unscale_(optimizer),
        "clip": lambda: nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM),
        "scaler.step": lambda: scaler.step(optimizer),
        "scaler.update": scaler.update,
        "scheduler.step": scheduler.step,
    }
    for call in [*order] * len(batches):
        calls[call]()


def moved(call: str, before: str) -> list[str]:
    order = [each for each in CALLS if each != call]
    order.insert(order.index(before), call)
    return order


calls_in_order = Definition(
    case=calls_in_order_case,
    observe=calls_in_order_observe,
    mistakes={
        "clip-before-unscale": moved("clip", before="unscale_"),
        "cleared-before-use": moved("zero_grad", before="scaler.step"),
        "clip-after-step": moved("clip", before="scaler.update"),
        "scheduler-first": moved("scheduler.step", before="scaler.step"),
    },
    rounds=3,
)


def whole_loop_case(rng: random.Random) -> Case:
    """Return a case whose arguments include seven batches, of which only the first three have large gradients."""
    batches: Any = [(torch.randn(6, 3), (10 if i < 3 else 0.3) * torch.randn(6, 1)) for i in range(7)]
    window, model, lr, max_norm = rng.choice((2, 3, 4, 5)), nn.Linear(3, 1), rng.uniform(0.05, 0.2), rng.uniform(2, 3)
    text = f"7 batches, window={window}, lr={lr:.2f}, max_norm={max_norm:.1f}: the weights afterwards"
    return (model, mse_loss, DataLoader(batches, batch_size=None), lr, window, max_norm), text


whole_loop = Definition(
    case=whole_loop_case,
    observe=trained,
    mistakes={
        "never-clears": variant("whole_loop", ("optimizer.zero_grad()", "pass")),
        "not-divided": variant("whole_loop", (" / len(part)", "")),
        "last-window-dropped": variant("whole_loop", ("    if window:\n        yield window\n", "")),
        "clips-each-batch": variant("whole_loop", ("    nn.utils.clip", "        nn.utils.clip")),
    },
    rounds=4,
)
