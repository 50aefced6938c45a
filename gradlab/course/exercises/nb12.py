"""The exercises of notebook 12."""

from __future__ import annotations

import math
import random
from collections.abc import Collection
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

from ..._process import RandomStream
from .checking import Case, Definition

Facts = dict[str, bool | None]


def verdict_of_case(rng: random.Random) -> Case:
    """Return facts of one of five kinds: all true, none, some, none known, true as far as known."""
    kinds: tuple[tuple[bool | None, ...], ...] = ((True,), (False,), (True, False), (None,), (True, None))
    kind = rng.choice(kinds)
    facts = [*kind, *(rng.choice(kind) for _ in range(rng.randrange(3)))]
    rng.shuffle(facts)
    return Case({f"case {number}": fact for number, fact in enumerate(facts, 1)})


def verdict_of_reference(facts: Facts) -> str:
    """Count: how many were tried, how many of them are true."""
    tried = sum(fact is not None for fact in facts.values())
    true = sum(fact is True for fact in facts.values())
    return "not judged" if not tried else {tried: "holds", 0: "does not hold"}.get(true, "depends")


def known(facts: Facts) -> list[bool]:
    return [fact for fact in facts.values() if fact is not None]


def rule(facts: Collection[bool | None]) -> str:
    return "holds" if all(facts) else "depends" if any(facts) else "does not hold"


def never_depends(facts: Facts) -> str:
    return "not judged" if not known(facts) else "holds" if all(known(facts)) else "does not hold"


verdict_of = Definition(
    case=verdict_of_case,
    reference=verdict_of_reference,
    mistakes={
        "all-of-nothing": lambda facts: rule(known(facts)),
        "none-is-false": lambda facts: rule(facts.values()) if known(facts) else "not judged",
        "never-depends": never_depends,
    },
    rounds=60,  # so that each of the five kinds of case comes up
)


def flips_at_case(rng: random.Random) -> Case:
    xs, divide = [round(rng.uniform(0.5, 5), 1) for _ in range(rng.randint(2, 6))], rng.random() < 0.5
    return Case(xs, divide, text=f"xs={xs}, divide={divide}")


def flips_at_reference(xs: list[float], divide: bool) -> float:
    """Let the loop run with many values of lr at once, and look where it turns, closer and closer."""
    low, high, many = 1e-3, 100.0, 32
    for _ in range(3):
        lrs = torch.logspace(math.log10(low), math.log10(high), many, dtype=torch.float64)
        w = torch.ones_like(lrs)
        for _ in range(5):
            w.requires_grad_()
            loss = torch.stack([(w * x).square().sum() for x in xs]).sum() / (len(xs) if divide else 1)
            w = w.detach() - lrs * torch.autograd.grad(loss, w)[0]
        settled = int((w.abs() < 1).sum())
        low, high = lrs[max(settled - 1, 0)].item(), lrs[min(settled, many - 1)].item()
    return math.sqrt(low * high)


def limit(xs: list[float], divide: bool) -> float:
    return (len(xs) if divide else 1) / sum(x * x for x in xs)


flips_at = Definition(
    case=flips_at_case,
    reference=flips_at_reference,
    mistakes={
        "lost-two": lambda xs, divide: 2 * limit(xs, divide),
        "best-lr": lambda xs, divide: limit(xs, divide) / 2,
        "never-divides": lambda xs, divide: limit(xs, False),
    },
    relative=0.01,  # it is measured, not computed
)


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


def same_effect_case(rng: random.Random) -> Case:
    """Return a way to build a model, one to make an optimizer, and batches that may leave a head out.

    What theory says: both end alike, unless a weight is left out and its optimizer moves it without a gradient.
    """
    seed = rng.randrange(2**31)
    name = rng.choice(list(OTHERS)) if rng.random() < 0.5 else "SGD"  # half plain SGD: no kind of case is rare
    pause = rng.random() < 0.5

    def build() -> nn.Module:
        with RandomStream(seed):
            return Heads()

    asked = [(0, 1), *[(0,) if pause else (0, 1)] * 3, (0, 1)]
    batches = [(torch.randn(4, 3), torch.randn(4, 1), heads) for heads in asked]
    text = f"{name}, {'one head left out for three batches' if pause else 'both heads always asked'}"
    return Case(build, OTHERS.get(name, PLAIN), batches, text=text, expect=name == "SGD" or not pause)


def left_out(batches: Any) -> bool:
    return any(len(asked) == 1 for _, _, asked in batches)


same_effect = Definition(
    case=same_effect_case,
    mistakes={
        "always-same": lambda build, make, batches: True,
        "unused-is-enough": lambda build, make, batches: not left_out(batches),
        "only-the-optimizer": lambda build, make, batches: make is PLAIN,
    },
    rounds=30,
)
