"""The exercise ``pull_back``."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    size = rng.randint(2, 3)
    text = f"a W of {size} by {size} numbers"
    return Case(torch.randn(size, size), torch.randn(size), torch.randn(size), text=text)


def reference(w: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    w, x = w.requires_grad_(), x.requires_grad_()
    return torch.autograd.grad(torch.tanh(w @ x), (w, x), v)


def through_product(w: Tensor, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Go back through w @ x by hand, from the gradient of the product."""
    return torch.outer(g, x), w.T @ g


def by_name(both: tuple[Tensor, Tensor]) -> dict[str, float]:
    """Put both into one row, each number with its name."""
    w, x = (part.tolist() for part in both)
    entries = {f"W{i}{j}": number for i, row in enumerate(w) for j, number in enumerate(row)}
    return entries | {f"x{j}": number for j, number in enumerate(x)}


DEFINITION = Definition(
    case=case,
    reference=reference,
    mistakes={
        "no-slope": through_product,
        "no-seed": lambda w, x, v: reference(w, x, torch.ones_like(v)),
        "not-squared": lambda w, x, v: through_product(w, x, v * (1 - torch.tanh(w @ x))),
        "not-transposed": lambda w, x, v: (reference(w, x, v)[0], w @ (v * (1 - torch.tanh(w @ x) ** 2))),
        "outer-turned": lambda w, x, v: (reference(w, x, v)[0].T, reference(w, x, v)[1]),
        "other-order": lambda w, x, v: reference(w, x, v)[::-1],
    },
    plot_values=by_name,
    axes=("entry of W, then of x", "gradient"),
)
