"""The checks of the exercises in notebook 04; ``nb04.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from ..figures.curves import CourseFigure
from ..instruments.ring import ring_of_orders, run_order
from ..instruments.ring_trial import PIECES
from .checking import Case, Definition, variant
from .loops import trained


def step_first_observe(order: Any) -> str:
    """Return the outcome of a loop with its calls in ``order``, or a message if the answer ``order`` is not allowed."""
    if sorted(order) != sorted(PIECES) or order[0] != "step":
        return "not the four calls with step first"
    return run_order(" ".join(order)).outcome


step_first = Definition(
    case=lambda rng: ((), ""),
    observe=step_first_observe,
    draw=lambda order: CourseFigure(*ring_of_orders(order=" ".join(order)).drawings()[::2], size=(430, 330)),
    mistakes={
        "not-first": [*PIECES],
        "no-loss": ["step", "backward", "forward", "zero_grad"],
        "never-moves": ("step", "forward", "backward", "zero_grad"),  # the stub's order, as a tuple
    },
    rounds=1,
)


def uncleared_case(rng: random.Random) -> Case:
    """Return a case with a model of five layers, two of them equal, and an optimizer that lacks some parameters."""
    layers = [nn.Linear(2, 2) for _ in range(4)]
    layers.append(copy.deepcopy(layers[0]))
    first, second, _ = rng.sample(range(1, 4), 3)
    layers[rng.choice((first, second))].requires_grad_(False)
    optimizer = SGD([layers[0].weight, *layers[first].parameters()], lr=0.1)
    optimizer.add_param_group({"params": layers[second].parameters()})
    return (nn.Sequential(*layers), optimizer), "a model of 10 parameters and an optimizer with groups of [3, 2]"


def uncleared_observe(answer: Callable[..., object], model: nn.Module, optimizer: Optimizer) -> object:
    """Return at most 100 names from an answer, sorted if all of them are strings; return any other result unchanged."""
    names = answer(model, optimizer)
    if not isinstance(names, Iterable) or isinstance(names, (str, Tensor)):
        return names
    names = list(islice(names, 100))  # a generator may never end
    return sorted(names) if all(isinstance(name, str) for name in names) else names


uncleared = Definition(
    case=uncleared_case,
    observe=uncleared_observe,
    mistakes={
        "the-others": variant("uncleared", ("not in held", "in held")),
        "first-group": variant("uncleared", ("optimizer.param_groups", "optimizer.param_groups[:1]")),
        "same-values": variant("uncleared", ("id(p)", "str(p.tolist())")),
    },
)


def two_players_case(rng: random.Random) -> Case:
    generator = nn.Linear(2, 3)
    critic = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    lr = rng.uniform(0.1, 0.3)
    opt_g, opt_c = (torch.optim.SGD(model.parameters(), lr=lr) for model in (generator, critic))
    batches = [(torch.randn(8, 3) + 2, torch.randn(8, 2)) for _ in range(5)]
    text = f"five rounds at lr={lr:.3f}: these are the weights of both afterwards"
    return (generator, critic, opt_g, opt_c, gan_loss, batches), text


def gan_loss(scores: Tensor, real: bool) -> Tensor:
    return nn.functional.binary_cross_entropy_with_logits(scores, torch.full_like(scores, float(real)))


two_players = Definition(
    case=two_players_case,
    observe=trained,
    mistakes={
        "still-at-the-end": variant(
            "two_players", ("opt_c.zero_grad()", "pass"), ("opt_c.step()", "opt_c.step()\n        opt_c.zero_grad()")
        ),
        "never-cleared": variant("two_players", ("opt_c.zero_grad()", "pass")),
        "half-lost": variant("two_players", ("real), True).backward()", "real), True).backward(); opt_c.zero_grad()")),
        "critic-stands-still": variant("two_players", ("opt_c.step()", "opt_c.zero_grad()\n        opt_c.step()")),
    },
    rounds=3,
)


def trains_case(rng: random.Random) -> Case:
    order = list(PIECES) if rng.random() < 0.1 else rng.sample(PIECES, 4)
    return (order,), " > ".join(order)


trains = Definition(
    case=trains_case,
    mistakes={
        "standard-only": lambda order: order == [*PIECES],
        "as-written": variant("trains", ("order[", '[*order, ""]['), (" % 4", "")),
        "no-loss": variant("trains", ('order.index("forward") < order.index("backward")', "True")),
        "forward-between": variant(
            "trains", ('after_backward == "step"', '(after_backward == "step" or order[1:3] == ["step", "zero_grad"])')
        ),
    },
    rounds=400,  # many, because one of the mistakes is wrong about only one of the 24 orders
)
