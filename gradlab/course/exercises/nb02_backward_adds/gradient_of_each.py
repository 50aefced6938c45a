"""The exercise ``gradient_of_each``."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    w = torch.randn(2, requires_grad=True)
    losses = [((torch.randn(4, 2) @ w - torch.randn(4)) ** 2).mean() for _ in range(rng.randint(3, 5))]
    return Case(w, losses, text=f"{len(losses)} losses of two weights")


def alone(w: Tensor, losses: list[Tensor]) -> list[Tensor]:
    """Return the gradient of each loss from autograd.grad, which never touches .grad."""
    return [torch.autograd.grad(loss, w)[0] for loss in losses]


def reference(w: Tensor, losses: list[Tensor]) -> dict[str, object]:
    rows = alone(w, losses)
    return {"the list": rows, "w.grad at the end": sum(rows)}


def observe(answer: Callable[..., object], w: Tensor, losses: list[Tensor]) -> dict[str, object]:
    rows = answer(w, losses)
    return {"the list": rows, "w.grad at the end": torch.zeros(2) if w.grad is None else w.grad}


def loop(keep: Callable[[Any, Any], Any], *, clear: bool = False) -> Callable[..., list[Tensor]]:
    """Return an answer that keeps ``keep(w.grad, before)`` of each backward; ``before`` is no copy."""

    def answer(w: Tensor, losses: list[Tensor]) -> list[Tensor]:
        kept = []
        for loss in losses:
            if clear:
                w.grad = None
            before = w.grad
            loss.backward()
            kept.append(keep(w.grad, before))
        return kept

    return answer


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=observe,
    mistakes={
        "one-tensor": loop(lambda grad, before: grad),
        "running-sums": loop(lambda grad, before: grad.clone()),
        "minus-itself": loop(lambda grad, before: grad.clone() if before is None else grad - before),
        "cleared": loop(lambda grad, before: grad, clear=True),
        "nothing-in-grad": alone,
    },
    plot_values=lambda value: torch.stack([*value["the list"], value["w.grad at the end"]]).detach(),
    axes=("the gradients in the list, the last two numbers: w.grad", "gradient"),
)
