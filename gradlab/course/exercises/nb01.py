"""The exercises of notebook 01."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .definition import Case, Definition


def keeps_grad_case(rng: random.Random) -> Case:
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


def keeps_grad_observe(answer: Callable[[Tensor], object], tensors: dict[str, Tensor]) -> dict[str, object]:
    return {name: answer(tensor) for name, tensor in tensors.items()}


keeps_grad = Definition(
    case=keeps_grad_case,
    observe=keeps_grad_observe,
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


def pull_back_case(rng: random.Random) -> Case:
    size = rng.randint(2, 3)
    text = f"a W of {size} by {size} numbers"
    return Case(torch.randn(size, size), torch.randn(size), torch.randn(size), text=text)


def pull_back_reference(w: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, ...]:
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


pull_back = Definition(
    case=pull_back_case,
    reference=pull_back_reference,
    mistakes={
        "no-slope": through_product,
        "no-seed": lambda w, x, v: pull_back_reference(w, x, torch.ones_like(v)),
        "not-squared": lambda w, x, v: through_product(w, x, v * (1 - torch.tanh(w @ x))),
        "not-transposed": lambda w, x, v: (pull_back_reference(w, x, v)[0], w @ (v * (1 - torch.tanh(w @ x) ** 2))),
        "outer-turned": lambda w, x, v: (pull_back_reference(w, x, v)[0].T, pull_back_reference(w, x, v)[1]),
        "other-order": lambda w, x, v: pull_back_reference(w, x, v)[::-1],
    },
    plot_values=by_name,
    axes=("entry of W, then of x", "gradient"),
)


def count_paths_case(rng: random.Random) -> Case:
    """Return the grad_fn of a random sum of sums of one weight and of constants."""
    weight = torch.zeros((), requires_grad=True)
    made = [weight]
    for number in range(rng.randint(4, 8)):
        other = 1.0 if number and rng.random() < 0.3 else rng.choice(made)
        made.append(made[-1] + other if rng.random() < 0.7 else rng.choice(made[-2:]) + other)
    loss, node = made[-1], made[-1].grad_fn
    text = f"a graph of {len(nodes(node))} nodes"
    # Each way brings a gradient of 1, and autograd adds them up.
    return Case(node, text=text, expect=lambda: int(torch.autograd.grad(loss, weight)[0]))


def ways(node: Any, at_constant: int = 0) -> int:
    if node is None:
        return at_constant
    return sum(ways(target, at_constant) for target, _ in node.next_functions) if node.next_functions else 1


def below(node: Any) -> list[Any]:
    return [target for target, _ in node.next_functions if target is not None]


def nodes(node: Any) -> set[Any]:
    return {node}.union(*map(nodes, below(node)))


def longest(node: Any) -> int:
    return max((1 + longest(target) for target in below(node)), default=0)


count_paths = Definition(
    case=count_paths_case,
    mistakes={
        "arrived-once": lambda node: 1,
        "visited-once": lambda node: sum(not below(target) for each in nodes(node) for target in below(each)),
        "dead-ends": lambda node: ways(node, at_constant=1),
        "nodes": lambda node: len(nodes(node)),
        "longest": longest,
        "off-by-one": lambda node: ways(node) + 1,
    },
)
