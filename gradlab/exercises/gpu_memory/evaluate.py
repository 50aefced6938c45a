"""The exercise ``evaluate``: the evaluation that grows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ...memory import Ledger
from ..base import Exercise, Mistake


def _evaluation(add: Callable[[Any, Tensor], Any], *, graph: bool = False, mean: bool = True) -> Callable[..., Any]:
    """Return an evaluation that adds up in this way, with or without a graph for backward()."""

    def evaluate(model: nn.Module, batches: Any) -> Any:
        total: Any = 0
        with torch.set_grad_enabled(graph):
            for x, y in batches:
                total = add(total, cross_entropy(model(x), y))
        return total / len(batches) if mean else total

    return evaluate


def _in_eval_mode(model: nn.Module, batches: Any) -> Any:
    model.eval()
    return _evaluation(lambda total, loss: total + loss, graph=True)(model, batches)


def _switched_off(model: nn.Module, batches: Any) -> Any:
    said = _evaluation(lambda total, loss: total + loss)(model, batches)
    torch.set_grad_enabled(False)
    return said


class Evaluate(Exercise):
    """An evaluation that saves activations for nobody."""

    name = "evaluate"
    notebook = "09_gpu_memory"
    title = "The evaluation that grows"
    level, minutes = "medium", 8
    spec = (
        "`evaluate` returns the mean loss over batches of equal size, and the more batches, the more memory it takes: "
        "mend it so that it keeps nothing for a `backward()` that never comes."
    )
    stub = """
def evaluate(model, batches):
    total = 0
    for x, y in batches:
        total = total + cross_entropy(model(x), y)
    return total / len(batches)
"""
    hints = (
        "What does `total` remember, besides a number?",
        "Two things are wanted: no growth from batch to batch, and nothing saved within a batch. One context manager "
        "does both.",
        "`with torch.no_grad():` around the loop.",
    )
    mistakes = (
        Mistake(
            "grows",
            "Every batch still leaves its activations behind: `total` holds a graph, and the graph holds them.",
            _evaluation(lambda total, loss: total + loss, graph=True),
        ),
        Mistake(
            "one-batch",
            "It grows no more. But each forward pass still saves its activations: for whom?",
            _evaluation(lambda total, loss: total + loss.item(), graph=True),
        ),
        Mistake(
            "eval-mode",
            "`eval()` tells dropout and BatchNorm what to do. It does not change what is saved.",
            _in_eval_mode,
        ),
        Mistake(
            "stays-off",
            "It saves nothing, but gradients stay off afterwards: the next training will fail.",
            _switched_off,
        ),
        Mistake("sum", "That is the sum, not the mean.", _evaluation(lambda total, loss: total + loss, mean=False)),
        Mistake("last", "That is the last batch's loss alone.", _evaluation(lambda total, loss: loss, mean=False)),
        Mistake(
            "last-share",
            "That is the last batch's share: `total` must add up.",
            _evaluation(lambda total, loss: loss),
        ),
    )
    rounds = 2
    seconds = 10.0  # it is run under a ledger, which is slow where many run at once

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small classifier and a dozen or so batches."""
        rows, model = dice.randrange(20, 40), nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))
        many = dice.randrange(8, 14)
        return model, [(torch.randn(rows, 16), torch.randint(10, (rows,))) for _ in range(many)]

    def right(self, model: nn.Module, batches: Any) -> Any:
        """Take all rows at once: the batches are of equal size."""
        x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
        return {"mean loss": cross_entropy(model(x), y).item(), "kept for backward": "nothing"}

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Run it under a ledger, on two batches and on all, and say in words what it keeps."""
        model, batches = arguments
        (_, few), (said, most) = (_kept(answer, model, some) for some in (batches[:2], batches))
        words = "nothing" if most == 0 else "one batch at a time" if most < 1.5 * few else "every batch"
        words += ", in eval mode" * (most > 0 and not model.training)
        words += ", but gradients stay off" * (not torch.is_grad_enabled())
        words += ", but there are gradients now" * any(p.grad is not None for p in model.parameters())
        torch.set_grad_enabled(True)
        mean = said.item() if isinstance(said, Tensor) and said.numel() == 1 else said
        return {"mean loss": mean, "kept for backward": words}

    def told(self, *arguments: Any) -> str:
        """Say how many."""
        return f"{len(arguments[1])} batches of {len(arguments[1][0][0])} rows"

    def drawn(self, value: Any) -> Any:
        """Draw nothing: one of the two is a text."""
        return


def _kept(answer: Any, model: nn.Module, batches: Any) -> tuple[Any, int]:
    """Return what an evaluation says, and the most bytes that it keeps for backward()."""
    with Ledger(model, (), batches) as ledger:
        said = answer(model, batches)
    return said, max((point.high["activations"] for point in ledger.timeline), default=0)
