"""The exercise ``pull_back``: be the node."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..base import Exercise, Mistake


def _pulled(
    slope: Callable[[Tensor], Any] = lambda y: 1 - y**2,
    *,
    seed: bool = True,
    for_w: Callable[[Tensor, Tensor], Tensor] = torch.outer,
    turned: bool = True,
) -> Callable[..., Any]:
    """Make a vector-Jacobian product of tanh(W @ x): the right one, or one that is wrong in a place."""

    def pull_back(weight: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        inner = (v if seed else torch.ones_like(v)) * slope(torch.tanh(weight @ x))
        return for_w(inner, x), (weight.T if turned else weight) @ inner

    return pull_back


class PullBack(Exercise):
    """A vector-Jacobian product by hand: what each node of the graph does."""

    name = "pull_back"
    notebook = "01_autograd"
    title = "Be the node"
    level, minutes = "medium", 8
    spec = (
        "For `y = torch.tanh(W @ x)` write `pull_back(W, x, v)`: the pair of what "
        "`y.backward(gradient=v)` would put into `W.grad` and into `x.grad`, by hand."
    )
    stub = """
def pull_back(W, x, v):
    for_W, for_x = None, None  # your answer
    return for_W, for_x
"""
    hints = (
        "Two nodes, one after the other: first back through tanh, then back through W @ x.",
        "The slope of tanh is 1 - tanh**2. Multiply v by it, element by element, and call the result g.",
        "W[i, j] goes into output i only, and is multiplied by x[j] there. So W[i, j] gets g[i] * x[j].",
        "x[j] goes into every output: sum W[i, j] * g[i] over i. Which product of a matrix and a vector is that?",
    )
    mistakes = (
        Mistake("no-slope", "tanh is missing: v has to be multiplied by its slope first.", _pulled(lambda y: 1.0)),
        Mistake(
            "no-seed", "v is missing: that is what backward(gradient=torch.ones(...)) would give.", _pulled(seed=False)
        ),
        Mistake("not-squared", "The slope of tanh is 1 - tanh squared.", _pulled(lambda y: 1 - y)),
        Mistake(
            "not-transposed",
            "For W it is right. For x the way back goes through W transposed: x[j] collects from column j.",
            _pulled(turned=False),
        ),
        Mistake(
            "outer-turned",
            "For x it is right. For W rows and columns are exchanged: W[i, j] gets g[i] * x[j].",
            _pulled(for_w=lambda inner, x: torch.outer(x, inner)),
        ),
        Mistake(
            "other-order", "Both are right, in the wrong order: first W, then x.", lambda *all: _pulled()(*all)[::-1]
        ),
    )
    axes = ("entry of W, then of x", "gradient")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small square W, an x and a v."""
        size = dice.randint(2, 3)
        return torch.randn(size, size), torch.randn(size), torch.randn(size)

    def right(self, weight: Tensor, x: Tensor, v: Tensor) -> Any:
        """Let autograd do it."""
        weight, x = weight.requires_grad_(), x.requires_grad_()
        return torch.autograd.grad(torch.tanh(weight @ x), (weight, x), v)

    def told(self, *arguments: Any) -> str:
        """Say how large they are."""
        size = len(arguments[1])
        return f"a W of {size} by {size} numbers"

    def drawn(self, value: Any) -> Any:
        """Put both into one row, each number with its name."""
        weight, x = (part.detach().tolist() for part in value)
        entries = {f"W{i}{j}": number for i, row in enumerate(weight) for j, number in enumerate(row)}
        return entries | {f"x{j}": number for j, number in enumerate(x)}
