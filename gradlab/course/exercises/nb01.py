"""The exercises of notebook 01."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import Tensor

from ...memory import graph_nodes
from .checking import Case, Definition


def keeps_grad_case(rng: random.Random) -> Case:
    """Return tensors by name, with how each was made; three of them come in two kinds."""
    w, x, f = torch.randn(3, requires_grad=True), torch.randn(3), torch.randn(3, requires_grad=True)
    f.requires_grad_(False)
    h = w * x * f
    k, d = torch.tanh(h), h.detach()
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
    return (tensors,), ""


keeps_grad = Definition(
    case=keeps_grad_case,
    observe=lambda answer, tensors: {name: answer(tensor) for name, tensor in tensors.items()},
    mistakes={
        "requires-grad": lambda tensor: tensor.requires_grad,
        "every-leaf": lambda tensor: tensor.is_leaf,
        "leaf-or-retained": lambda tensor: tensor.is_leaf or tensor.retains_grad,
        "no-retain": lambda tensor: tensor.requires_grad and tensor.is_leaf,
    },
)


def pull_back_case(rng: random.Random) -> Case:
    size = rng.randint(2, 3)
    return (torch.randn(size, size), torch.randn(size), torch.randn(size)), f"a W of {size} by {size} numbers"


def pulled_back(w: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    w, x = w.requires_grad_(), x.requires_grad_()
    return torch.autograd.grad(torch.tanh(w @ x), (w, x), v)


pull_back = Definition(
    case=pull_back_case,
    mistakes={
        "no-slope": lambda w, x, v: (torch.outer(v, x), w.T @ v),
        "no-seed": lambda w, x, v: pulled_back(w, x, torch.ones_like(v)),
        "not-transposed": lambda w, x, v: (pulled_back(w, x, v)[0], w @ (v * (1 - torch.tanh(w @ x) ** 2))),
        "outer-turned": lambda w, x, v: (pulled_back(w, x, v)[0].T, pulled_back(w, x, v)[1]),
    },
)


def count_paths_case(rng: random.Random) -> Case:
    """Return the grad_fn of a random sum of sums of one weight and of constants."""
    weight = torch.zeros((), requires_grad=True)
    sums = [weight]
    for number in range(rng.randint(4, 8)):
        other = 1.0 if number and rng.random() < 0.3 else rng.choice(sums)
        sums.append(sums[-1] + other if rng.random() < 0.7 else rng.choice(sums[-2:]) + other)
    node = sums[-1].grad_fn
    return (node,), f"a graph of {len(graph_nodes([node]))} nodes"


def paths_to_any_end(node: Any) -> int:
    """Count the paths to the weight and to the constants."""
    if node is None or not node.next_functions:
        return 1
    return sum(paths_to_any_end(target) for target, _ in node.next_functions)


def below(node: Any) -> list[Any]:
    return [target for target, _ in node.next_functions if target is not None]


count_paths = Definition(
    case=count_paths_case,
    mistakes={
        "visited-once": lambda node: sum(not below(target) for each in graph_nodes([node]) for target in below(each)),
        "dead-ends": paths_to_any_end,
        "nodes": lambda node: len(graph_nodes([node])),
    },
)
