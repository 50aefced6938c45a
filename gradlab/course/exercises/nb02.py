"""The exercises of notebook 02."""

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
from .checking import Case, Definition, TroubleError

INPUTS = torch.tensor([[1.0, 0.5], [-0.5, 1.0], [1.0, -0.5]])  # the lesson's three batches, one sample each
TARGETS = torch.tensor([1.0, 0.5, -1.0])


def held(w: Tensor) -> Tensor:
    return torch.zeros(2) if w.grad is None else w.grad.clone()


def third_arrow_case(rng: random.Random) -> Case:
    return (torch.randn(2, requires_grad=True), [*zip(torch.randn(3, 2), torch.randn(3, 1), strict=True)]), ""


def third_arrow_observe(answer: Callable[..., object], w: Tensor, batches: list[Any]) -> dict[str, object]:
    try:
        answer(w, batches)
    except RuntimeError as error:
        if "does not require grad" not in str(error):
            raise
        raise TroubleError("The loss of batch 3 has no graph now, so it has no `backward()`: skip that too") from error
    return {"w.grad at the end": held(w)}


def counting(*times: int) -> Callable[..., None]:
    """Make an answer that counts each batch's loss so many times."""

    def answer(w: Tensor, batches: list[Any]) -> None:
        for (x, y), factor in zip(batches, times, strict=True):
            (factor * (w @ x - y) ** 2).backward()

    return answer


def draw_added(answer: Callable[..., object]) -> CourseFigure:
    """Draw what a loop over the lesson's batches adds to .grad, on the contours of their loss, and the next step."""
    w, written = torch.tensor([1.0, 2.0], requires_grad=True), list[tuple[Tensor, Tensor]]()
    w.register_hook(lambda gradient: written.append((held(w), gradient.clone())))
    answer(w, [*zip(INPUTS, TARGETS[:, None], strict=True)])
    added, total = list[tuple[int, Tensor]](), held(w)  # the number of a batch, 0 for what no backward() wrote
    for before, gradient in [*written, (total, torch.zeros(2))]:
        added = [*added, (0, before - sum(part for _, part in added))] if before.any() else []
        along = torch.cosine_similarity(INPUTS, gradient, dim=1).abs()  # a gradient goes along the input of its batch
        added.append((int(along.argmax()) + 1, gradient))
    added = [(at, part) for at, part in added if part.norm() > 1e-5]
    arrows = [BatchArrow((at, at) if at else None, part[0].item(), part[1].item(), math.nan) for at, part in added]
    x, y = torch.linspace(-0.7, 5.7, 41), torch.linspace(-0.2, 6.2, 41)
    loss = ((torch.cartesian_prod(y, x).flip(1) @ INPUTS.T - TARGETS) ** 2).mean(1).reshape(41, 41)
    contours, holds = Contours(x.tolist(), y.tolist(), loss.tolist()), [(at, at) for at, _ in added if at]
    move = tuple((-0.4 * total).tolist())
    scene = Arrows(arrows, tuple(total.tolist()), holds, contours, path=[(1.0, 2.0)], move=move)
    return CourseFigure(draw(scene), size=(560, 480))


third_arrow = Definition(
    case=third_arrow_case,
    observe=third_arrow_observe,
    draw=draw_added,
    mistakes={
        "still-there": counting(1, 1, 1),
        "turned-round": counting(1, 1, -1),
        "only-the-third": counting(0, 0, 1),
        "all-gone": counting(0, 0, 0),
    },
)


def gradient_of_each_case(rng: random.Random) -> Case:
    w = torch.randn(2, requires_grad=True)
    losses = [((torch.randn(4, 2) @ w - torch.randn(4)) ** 2).mean() for _ in range(rng.randint(3, 5))]
    return (w, losses), f"{len(losses)} losses of two weights"


def gradient_of_each_observe(answer: Callable[..., object], w: Tensor, losses: list[Tensor]) -> dict[str, object]:
    return {"the list": answer(w, losses), "w.grad at the end": held(w)}


def keeping(keep: Callable[[Any], Any], *, clear: bool = False) -> Callable[..., list[Tensor]]:
    """Make an answer that keeps ``keep(w.grad)`` after each backward."""

    def answer(w: Tensor, losses: list[Tensor]) -> list[Tensor]:
        rows = []
        for loss in losses:
            if clear:
                w.grad = None
            loss.backward()
            rows.append(keep(w.grad))
        return rows

    return answer


gradient_of_each = Definition(
    case=gradient_of_each_case,
    observe=gradient_of_each_observe,
    mistakes={
        "one-tensor": keeping(lambda grad: grad),
        "running-sums": keeping(Tensor.clone),
        "minus-itself": lambda *case: [grad * (not at) for at, grad in enumerate(keeping(Tensor.clone)(*case))],
        "cleared": keeping(lambda grad: grad, clear=True),
    },
)


def truncated_case(rng: random.Random) -> Case:
    """Return a weight, a sequence that the chunk size does not divide, and the size."""
    size = rng.randint(2, 4)
    steps = size * rng.randint(2, 3) + rng.randint(1, size - 1)
    w = torch.tensor(rng.choice((-1, 1)) * rng.uniform(0.6, 1.2), requires_grad=True)
    text = f"w={w.item():.2f}, {steps} steps in chunks of {size}"
    return (w, torch.randn(steps), torch.tanh(torch.randn(steps)), size), text


def in_pieces(steps: int | None = None, *, carry: bool = True, clear: bool = False) -> Callable[..., Tensor | None]:
    """Make an answer whose chunks have so many steps, by default as many as the case asks for."""

    def answer(w: Tensor, xs: Tensor, ys: Tensor, size: int) -> Tensor | None:
        h = torch.zeros(())
        for chunk in zip(xs.split(steps or size), ys.split(steps or size), strict=True):
            h, loss = h.detach() * carry, torch.zeros(())
            for x, y in zip(*chunk, strict=True):
                h = torch.tanh(w * h + x)
                loss = loss + (h - y) ** 2
            w.grad = None if clear else w.grad
            loss.backward()
        return w.grad

    return answer


truncated = Definition(
    case=truncated_case,
    mistakes={
        "whole": in_pieces(1000),
        "every-step": in_pieces(1),
        "begins-again": in_pieces(carry=False),
        "last-chunk-only": in_pieces(clear=True),
    },
)
