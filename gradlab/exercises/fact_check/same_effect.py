"""The exercise ``same_effect``: an experiment that decides."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..base import Exercise, Mistake


class _Heads(nn.Module):
    """A body with two heads; a batch names those that it asks."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.heads = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])

    def loss(self, batch: tuple[Tensor, Tensor, tuple[int, ...]]) -> Tensor:
        """Return the squared error of all heads that are asked."""
        x, y, asked = batch
        body = torch.tanh(self.body(x))
        return torch.stack([(self.heads[head](body) - y).square().mean() for head in asked]).sum()


_OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD with weight decay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
}


def _left_out(batches: Any) -> bool:
    return any(len(asked) == 1 for _, _, asked in batches)


def _plain(build: Any, make: Any) -> bool:
    settings = make(build().parameters()).defaults
    return settings.get("momentum") == 0 and settings.get("weight_decay") == 0 and "betas" not in settings


class SameEffect(Exercise):
    """An experiment that decides B7."""

    name = "same_effect"
    notebook = "12_fact_check"
    title = "An experiment that decides"
    level, minutes = "harder", 8
    spec = (
        "Write `same_effect(build, make, batches)`: train `build()` with the optimizer `make(parameters)` on "
        "`batches`, once cleared to None and once to zeros, and say (True or False) whether both end with the same "
        "weights; the loss of a batch is `model.loss(batch)`."
    )
    stub = """
def same_effect(build, make, batches):
    return None  # your answer
"""
    hints = (
        "Write the loop once, as a function of `set_to_none`, and call it twice.",
        "Each run needs a model and an optimizer of its own. `build()` gives the same weights each time.",
        "`torch.nn.utils.parameters_to_vector(model.parameters())` puts all weights in a row, "
        "and `torch.equal` compares two.",
    )
    mistakes = (
        Mistake(
            "always-same",
            "You say True every time. Do the runs differ in set_to_none, do they see all batches, "
            "and do you compare the weights of both heads?",
            lambda build, make, batches: True,
        ),
        Mistake(
            "always-different",
            "You say False every time. Does each run begin with a fresh `build()` and an optimizer of its own, "
            "and do you compare numbers, not objects?",
            lambda build, make, batches: False,
        ),
        Mistake(
            "upside-down",
            "The other way round: you say True where they differ.",
            lambda build, make, batches: _left_out(batches) and not _plain(build, make),
        ),
        Mistake(
            "unused-is-enough",
            "You say False whenever a weight is left out. What does plain SGD do with a gradient of 0?",
            lambda build, make, batches: not _left_out(batches),
        ),
        Mistake(
            "only-the-optimizer",
            "You look at the optimizer only. Where every weight gets a gradient, even Adam ends the same.",
            lambda build, make, batches: _plain(build, make),
        ),
    )
    rounds = 30

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a way to build a model, one to make an optimizer, and batches that may leave a head out."""
        seed, self._name = dice.randrange(2**31), "SGD"
        if dice.random() < 0.5:  # half plain SGD, half not, so that no kind of case is rare
            self._name = dice.choice(list(_OPTIMIZERS)[1:])
        self._pause = dice.random() < 0.5
        # The first optimizer of a process loads half of PyTorch; that must not count as time of the answer.
        _OPTIMIZERS[self._name]([nn.Parameter(torch.zeros(1))]).zero_grad()

        def build() -> nn.Module:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                return _Heads()

        asked = [(0, 1), *[(0,) if self._pause else (0, 1)] * 3, (0, 1)]
        batches = [(torch.randn(4, 3), torch.randn(4, 1), heads) for heads in asked]
        return build, _OPTIMIZERS[self._name], batches

    def right(self, build: Any, make: Any, batches: Any) -> Any:
        """Say what theory says: they differ where a weight is left out and its rule moves it without a gradient."""
        return self._name == "SGD" or not self._pause

    def told(self, *arguments: Any) -> str:
        """Say which optimizer, and whether a head is left out."""
        return f"{self._name}, {'one head left out for three batches' if self._pause else 'both heads always asked'}"
