"""The exercises of notebook 01."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .base import Exercise, Mistake

_HOME = "01_autograd"


class KeepsGrad(Exercise):
    """Leaf, non-leaf, retained: who has a gradient afterwards."""

    name = "keeps_grad"
    notebook = _HOME
    title = "Who keeps .grad?"
    level, minutes = "easy", 5
    spec = (
        "Write `keeps_grad(tensor)`: True if backward will leave something in `.grad` of this tensor, False if not; "
        "you are asked before backward, and every tensor lies on the way to the loss."
    )
    stub = """
def keeps_grad(tensor):
    return None  # your answer
"""
    hints = (
        "Look at the table under Who keeps .grad: which columns decide?",
        "`tensor.requires_grad`, `tensor.is_leaf` and `tensor.retains_grad` are all that you need.",
        "A gradient must be wanted at all. Then the tensor is a leaf, or somebody has called retain_grad() on it.",
    )
    mistakes = (
        Mistake(
            "requires-grad",
            "A gradient passes by every tensor that requires one, but most of them do not keep it.",
            lambda tensor: tensor.requires_grad,
        ),
        Mistake(
            "every-leaf",
            "Data is a leaf, too: nothing was computed to make it. But nobody wants its gradient.",
            lambda tensor: tensor.is_leaf,
        ),
        Mistake(
            "leaf-or-retained",
            "Nearly. Data and frozen weights are leaves, too, but no gradient is computed for them. What tells?",
            lambda tensor: tensor.is_leaf or tensor.retains_grad,
        ),
        Mistake(
            "no-retain",
            "Right for leaves. And a tensor on which retain_grad() was called?",
            lambda tensor: tensor.requires_grad and tensor.is_leaf,
        ),
        Mistake(
            "grad-fn",
            "Having a grad_fn means that it was computed. Those are just the tensors that keep nothing by themselves.",
            lambda tensor: tensor.grad_fn is not None,
        ),
        Mistake(
            "retained-only",
            "Those are the tensors that need to be told. Leaves keep theirs without.",
            lambda tensor: tensor.retains_grad,
        ),
        Mistake(
            "has-one-now",
            "You say no everywhere. Do you look at what is in `.grad` now? Before the first backward that is None.",
            lambda tensor: False,
        ),
    )

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return tensors by name, with how each was made; some of the names come in two kinds."""
        w, x = torch.randn(3, requires_grad=True), torch.randn(3)
        frozen = torch.randn(3, requires_grad=True).requires_grad_(False)
        h = w * x * frozen
        k = torch.tanh(h)
        again = h.detach()
        names = {"w, a weight": w, "x, data": x, "f, a weight that was frozen": frozen}
        for tensor, name in ((h, "h = w * x * f"), (k, "k = tanh(h)")):
            retained = dice.random() < 0.5
            if retained:
                tensor.retain_grad()
            names[f"{name}, with retain_grad()" if retained else name] = tensor
        wanted = dice.random() < 0.5
        again.requires_grad_(wanted)
        names["d = h.detach()" + (", with requires_grad_()" if wanted else "")] = again
        self._loss = (k + again).sum()
        return (names,)

    def right(self, tensors: dict[str, Tensor]) -> Any:
        """Let PyTorch say it."""
        self._loss.backward()
        held = {name for name, tensor in tensors.items() if (tensor.is_leaf or tensor.retains_grad) and _full(tensor)}
        return {name: name in held for name in tensors}

    def observe(self, answer: Callable[[Tensor], Any], tensors: dict[str, Tensor]) -> Any:
        """Ask about each."""
        return {name: answer(tensor) for name, tensor in tensors.items()}

    def told(self, *arguments: Any) -> str:
        """Say nothing: the names are in the answer."""
        return ""

    def drawn(self, value: Any) -> Any:
        """Draw nothing: yes and no are no heights."""
        return None


def _full(tensor: Tensor) -> bool:
    return tensor.grad is not None


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
    notebook = _HOME
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


def _walk(node: Any, found: Callable[[Any], int], *, once: bool = False, ends: int = 0) -> int:
    """Walk every way down from a node and add up what is found; ``once`` enters each node one time only."""
    seen: set[Any] = set()

    def down(here: Any) -> int:
        if here is None:
            return ends
        if once and here in seen and here.next_functions:
            return 0
        seen.add(here)
        return found(here) + sum(down(target) for target, _ in here.next_functions)

    return down(node)


def _is_last(node: Any) -> int:
    return int(not node.next_functions)


def _longest(node: Any) -> int:
    return 1 + max((_longest(target) for target, _ in node.next_functions if target is not None), default=-1)


def _distinct(node: Any) -> int:
    found, waiting = {node}, [node]
    while waiting:
        new = {target for target, _ in waiting.pop().next_functions if target is not None} - found
        found |= new
        waiting += new
    return len(found)


class CountPaths(Exercise):
    """The sum over all ways is what backward computes."""

    name = "count_paths"
    notebook = _HOME
    title = "Count the ways"
    level, minutes = "harder", 12
    spec = (
        "Write `count_paths(node)`: given the `grad_fn` of a loss that was made from one weight by additions only, "
        "return in how many ways one can walk along `next_functions` to `AccumulateGrad`."
    )
    stub = """
def count_paths(node):
    return None  # your answer
"""
    hints = (
        "`node.next_functions` is a tuple of pairs, (node, number). A constant stands there as None.",
        "From AccumulateGrad there is one way: you have arrived. It is the node without next_functions.",
        "From any other node there are as many ways as from all its next nodes together. A function may call itself.",
    )
    mistakes = (
        Mistake(
            "arrived-once",
            "You arrive once. But there are many ways to arrive, and each brings a gradient of its own.",
            lambda node: 1,
        ),
        Mistake(
            "visited-once",
            "You enter each node once, as one does to find out what can be reached. A node that two ways lead to "
            "must be counted for both.",
            lambda node: _walk(node, _is_last, once=True),
        ),
        Mistake(
            "dead-ends",
            "You count the constants, too: a None in next_functions is a way that leads nowhere.",
            lambda node: _walk(node, _is_last, ends=1),
        ),
        Mistake("nodes", "That is the number of nodes, not of ways.", _distinct),
        Mistake("longest", "That is how long the longest way is, not how many there are.", _longest),
        Mistake("off-by-one", "One too many: do you count the beginning as a way?", lambda n: _walk(n, _is_last) + 1),
    )

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return the grad_fn of a random sum of sums of one weight and of constants."""
        self._weight = torch.zeros((), requires_grad=True)
        made = [self._weight]
        for number in range(dice.randint(4, 8)):
            other = 1.0 if number and dice.random() < 0.3 else dice.choice(made)
            made.append(made[-1] + other if dice.random() < 0.7 else dice.choice(made[-2:]) + other)
        self._loss = made[-1]
        return (self._loss.grad_fn,)

    def right(self, node: Any) -> Any:
        """Each way brings a gradient of 1, and backward adds them up: the number of ways is in .grad."""
        self._loss.backward()
        assert self._weight.grad is not None
        return int(self._weight.grad)

    def told(self, *arguments: Any) -> str:
        """Say how large the graph is."""
        return f"a graph of {_distinct(arguments[0])} nodes"


EXERCISES = (KeepsGrad, PullBack, CountPaths)
