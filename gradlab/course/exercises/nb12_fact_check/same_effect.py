"""The exercise ``same_effect``."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

from ..definition import Case, Definition

PLAIN = partial(SGD, lr=0.1)
OTHERS = {
    "SGD with momentum": partial(SGD, lr=0.1, momentum=0.9),
    "SGD with weight decay": partial(SGD, lr=0.1, weight_decay=0.1),
    "Adam": partial(Adam, lr=0.1),
}


class Heads(nn.Module):
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


def case(rng: random.Random) -> Case:
    """Return a way to build a model, one to make an optimizer, and batches that may leave a head out.

    What theory says: both end alike, unless a weight is left out and its optimizer moves it without a gradient.
    """
    seed = rng.randrange(2**31)
    name = rng.choice(list(OTHERS)) if rng.random() < 0.5 else "SGD"  # half plain SGD: no kind of case is rare
    pause = rng.random() < 0.5

    def build() -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return Heads()

    asked = [(0, 1), *[(0,) if pause else (0, 1)] * 3, (0, 1)]
    batches = [(torch.randn(4, 3), torch.randn(4, 1), heads) for heads in asked]
    text = f"{name}, {'one head left out for three batches' if pause else 'both heads always asked'}"
    return Case(build, OTHERS.get(name, PLAIN), batches, text=text, expect=name == "SGD" or not pause)


def left_out(batches: Any) -> bool:
    return any(len(asked) == 1 for _, _, asked in batches)


DEFINITION = Definition(
    case=case,
    mistakes={
        "always-same": lambda build, make, batches: True,
        "always-different": lambda build, make, batches: False,
        "upside-down": lambda build, make, batches: left_out(batches) and make is not PLAIN,
        "unused-is-enough": lambda build, make, batches: not left_out(batches),
        "only-the-optimizer": lambda build, make, batches: make is PLAIN,
    },
    rounds=30,
)
