"""The checks of the exercises in notebook 02; ``nb02.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...drawing import draw
from ...scenes import Arrows, BatchArrow, Contours
from ..figures.curves import CourseFigure
from .checking import Case, Definition, TroubleError, variant

INPUTS = torch.tensor([[1.0, 0.5], [-0.5, 1.0], [1.0, -0.5]])  # the lesson's three batches, one sample each
TARGETS = torch.tensor([1.0, 0.5, -1.0])


def grad_copy(w: Tensor) -> Tensor:
    return torch.zeros(2) if w.grad is None else w.grad.clone()


def third_arrow_case(rng: random.Random) -> Case:
    return (torch.randn(2, requires_grad=True), [*zip(torch.randn(3, 2), torch.randn(3, 1), strict=True)]), ""


def third_arrow_observe(answer: Callable[..., object], w: Tensor, batches: list[Any]) -> dict[str, object]:
    try:
        answer(w, batches)
    except RuntimeError as error:
        if "does not require grad" not in str(error):
            raise
        raise TroubleError("The loss of batch 3 has no graph now, so `backward()` fails: skip it, too") from error
    return {"w.grad at the end": grad_copy(w)}


def draw_added(answer: Callable[..., object]) -> CourseFigure:
    """Draw the vectors that an answer adds to .grad for the lesson's batches, and the next step, over loss contours."""
    w, written = torch.tensor([1.0, 2.0], requires_grad=True), list[tuple[Tensor, Tensor]]()
    w.register_hook(lambda gradient: written.append((grad_copy(w), gradient.clone())))
    answer(w, [*zip(INPUTS, TARGETS[:, None], strict=True)])
    added, total = list[tuple[int, Tensor]](), grad_copy(w)  # pairs of a batch's number (0 for other code) and a vector
    for before, gradient in [*written, (total, torch.zeros(2))]:
        added = [*added, (0, before - sum(part for _, part in added))] if before.any() else []
        along = torch.cosine_similarity(INPUTS, gradient, dim=1).abs()  # a batch's gradient is parallel to its input
        added.append((int(along.argmax()) + 1, gradient))
    added = [(batch, part) for batch, part in added if part.norm() > 1e-5]
    arrows = [BatchArrow((n, n) if n else None, part[0].item(), part[1].item(), math.nan) for n, part in added]
    x, y = torch.linspace(-0.7, 5.7, 41), torch.linspace(-0.2, 6.2, 41)
    loss = ((torch.cartesian_prod(y, x).flip(1) @ INPUTS.T - TARGETS) ** 2).mean(1).reshape(41, 41)
    contours, holds = Contours(x.tolist(), y.tolist(), loss.tolist()), [(batch, batch) for batch, _ in added if batch]
    move = tuple((-0.4 * total).tolist())
    scene = Arrows(arrows, tuple(total.tolist()), holds, contours, path=[(1.0, 2.0)], move=move)
    return CourseFigure(draw(scene), size=(560, 480))


third_arrow = Definition(
    case=third_arrow_case,
    observe=third_arrow_observe,
    draw=draw_added,
    mistakes={
        "still-there": variant("third_arrow", ("number == 3", "False")),
        "turned-round": variant("third_arrow", ("continue", "loss = -loss")),
        "only-the-third": variant("third_arrow", ("number == 3", "number < 3")),
        "all-gone": variant("third_arrow", ("number == 3", "True")),
    },
)


def gradient_of_each_case(rng: random.Random) -> Case:
    w = torch.randn(2, requires_grad=True)
    losses = [((torch.randn(4, 2) @ w - torch.randn(4)) ** 2).mean() for _ in range(rng.randint(3, 5))]
    return (w, losses), f"{len(losses)} losses of two weights"


def gradient_of_each_observe(answer: Callable[..., object], w: Tensor, losses: list[Tensor]) -> dict[str, object]:
    return {"the list": answer(w, losses), "w.grad at the end": grad_copy(w)}


gradient_of_each = Definition(
    case=gradient_of_each_case,
    observe=gradient_of_each_observe,
    mistakes={
        "one-tensor": variant("gradient_of_each", ("w.grad - before", "w.grad")),
        "running-sums": variant("gradient_of_each", ("w.grad - before", "w.grad.clone()")),
        "minus-itself": variant("gradient_of_each", ("w.grad.clone()", "w.grad")),
        "cleared": variant("gradient_of_each", ("        before =", "        w.grad = None\n        before =")),
    },
)


def truncated_case(rng: random.Random) -> Case:
    """Return a case with a weight, a sequence of inputs and targets, and a chunk size that leaves a remainder."""
    size = rng.randint(2, 4)
    steps = size * rng.randint(2, 3) + rng.randint(1, size - 1)
    w = torch.tensor(rng.choice((-1, 1)) * rng.uniform(0.6, 1.2), requires_grad=True)
    text = f"w={w.item():.2f}, {steps} steps in chunks of {size}"
    return (w, torch.randn(steps), torch.tanh(torch.randn(steps)), size), text


in_pieces = variant("truncated")
truncated = Definition(
    case=truncated_case,
    mistakes={
        "whole": lambda w, xs, ys, size: in_pieces(w, xs, ys, len(xs)),
        "every-step": lambda w, xs, ys, size: in_pieces(w, xs, ys, 1),
        "begins-again": variant("truncated", ("h.detach()", "torch.zeros(())")),
        "last-chunk-only": variant("truncated", ("loss.backward()", "w.grad = None\n        loss.backward()")),
    },
)
