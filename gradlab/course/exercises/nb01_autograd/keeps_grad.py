"""The exercise ``keeps_grad``."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor

from ..definition import Case, Definition


def case(rng: random.Random) -> Case:
    """Return tensors by name, with how each was made; three of them come in two kinds."""
    w, x, f = torch.randn(3, requires_grad=True), torch.randn(3), torch.randn(3, requires_grad=True)
    f.requires_grad_(False)
    h = w * x * f
    k = torch.tanh(h)
    d = h.detach()
    tensors = {"w, a weight": w, "x, data": x, "f, a weight that was frozen": f}
    for name, tensor, method in (
        ("h = w * x * f", h, "retain_grad"),
        ("k = tanh(h)", k, "retain_grad"),
        ("d = h.detach()", d, "requires_grad_"),
    ):
        called = rng.random() < 0.5
        if called:
            getattr(tensor, method)()
        tensors[f"{name}, with {method}()" if called else name] = tensor
    return Case(tensors, text="", expect=lambda: kept((k + d).sum(), tensors))


def kept(loss: Tensor, tensors: dict[str, Tensor]) -> dict[str, bool]:
    """Run backward and look; reading .grad of a tensor that does not keep one would make PyTorch warn."""
    loss.backward()
    return {name: (one.is_leaf or one.retains_grad) and one.grad is not None for name, one in tensors.items()}


def observe(answer: Callable[[Tensor], object], tensors: dict[str, Tensor]) -> dict[str, object]:
    return {name: answer(tensor) for name, tensor in tensors.items()}


DEFINITION = Definition(
    case=case,
    observe=observe,
    mistakes={
        "requires-grad": lambda tensor: tensor.requires_grad,
        "every-leaf": lambda tensor: tensor.is_leaf,
        "leaf-or-retained": lambda tensor: tensor.is_leaf or tensor.retains_grad,
        "no-retain": lambda tensor: tensor.requires_grad and tensor.is_leaf,
        "grad-fn": lambda tensor: tensor.grad_fn is not None,
        "retained-only": lambda tensor: tensor.retains_grad,
        "has-one-now": lambda tensor: False,
    },
    plot_values=lambda value: None,  # yes and no are no heights
)
