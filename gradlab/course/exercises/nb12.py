"""The exercises of notebook 12."""

from __future__ import annotations

import random
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

from ..._checks import brief
from ..._process import RandomStream
from .checking import Case, Definition, variant


def verdict_of_case(rng: random.Random) -> Case:
    """Return facts of one of five kinds: all true, none, some, none known, true as far as known."""
    kinds: tuple[tuple[bool | None, ...], ...] = ((True,), (False,), (True, False), (None,), (True, None))
    kind = rng.choice(kinds)
    facts = [*kind, *(rng.choice(kind) for _ in range(rng.randrange(3)))]
    rng.shuffle(facts)
    case = {f"case {number}": fact for number, fact in enumerate(facts, 1)}
    return (case,), brief(case)


verdict_of = Definition(
    case=verdict_of_case,
    mistakes={
        "all-of-nothing": variant("verdict_of", ("if not known", "if False")),
        "none-is-false": variant("verdict_of", ("if all(known)", "if all(facts.values())")),
        "never-depends": variant("verdict_of", ('"depends" if any(known) else ', "")),
    },
    rounds=60,  # so that each of the five kinds of case comes up
)


def flips_at_case(rng: random.Random) -> Case:
    xs, divide = [round(rng.uniform(0.5, 5), 1) for _ in range(rng.randint(2, 6))], rng.random() < 0.5
    return (xs, divide), f"xs={xs}, divide={divide}"


flips_at = Definition(
    case=flips_at_case,
    mistakes={
        "lost-two": variant("flips_at", ("2 * x**2", "x**2")),
        "best-lr": variant("flips_at", ("2 / curvature", "1 / curvature")),
        "never-divides": variant("flips_at", ("if divide", "if False")),
    },
    relative=0.01,  # so that a measured limit is right, too
)


PLAIN = partial(SGD, lr=0.1)
OTHERS = {
    "SGD with momentum": partial(SGD, lr=0.1, momentum=0.9),
    "SGD with weight decay": partial(SGD, lr=0.1, weight_decay=0.1),
    "Adam": partial(Adam, lr=0.1),
}


class Heads(nn.Module):
    """A body with two heads; a batch names those that it uses."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.heads = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])

    def loss(self, batch: tuple[Tensor, Tensor, tuple[int, ...]]) -> Tensor:
        """Return the squared error of all heads that a batch uses."""
        x, y, heads = batch
        body = torch.tanh(self.body(x))
        return torch.stack([(self.heads[head](body) - y).square().mean() for head in heads]).sum()


def same_effect_case(rng: random.Random) -> Case:
    """Return a way to build a model, one to make an optimizer, and batches that may leave a head out."""
    seed = rng.randrange(2**31)
    name = rng.choice(list(OTHERS)) if rng.random() < 0.5 else "SGD"  # half plain SGD: no kind of case is rare
    pause = rng.random() < 0.5

    def build() -> nn.Module:
        with RandomStream(seed):
            return Heads()

    chosen = [(0, 1), *[(0,) if pause else (0, 1)] * 3, (0, 1)]
    batches = [(torch.randn(4, 3), torch.randn(4, 1), heads) for heads in chosen]
    text = f"{name}, {'one head left out for three batches' if pause else 'both heads always asked'}"
    return (build, OTHERS.get(name, PLAIN), batches), text


same_effect = Definition(
    case=same_effect_case,
    mistakes={
        "always-same": lambda build, make, batches: True,
        "unused-is-enough": lambda build, make, batches: all(len(heads) == 2 for _, _, heads in batches),
        "only-the-optimizer": lambda build, make, batches: make is PLAIN,
    },
    rounds=30,
)
