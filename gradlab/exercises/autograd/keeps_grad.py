"""The exercise ``keeps_grad``: who keeps .grad?."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..base import Exercise, Mistake


class KeepsGrad(Exercise):
    """Leaf, non-leaf, retained: who has a gradient afterwards."""

    name = "keeps_grad"
    notebook = "01_autograd"
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
