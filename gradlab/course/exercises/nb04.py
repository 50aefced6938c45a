"""The exercises of notebook 04."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from .definition import Case, Definition
from .loops import all_weights, sgd_step_by_hand


def uncleared_case(rng: random.Random) -> Case:
    """Return a model of five layers, one a copy of another, and an optimizer whose two groups lack some."""
    layers = [nn.Linear(2, 2) for _ in range(4)]
    layers.append(copy.deepcopy(layers[0]))
    first, second, _ = rng.sample(range(1, 4), 3)
    layers[rng.choice((first, second))].requires_grad_(False)
    optimizer = SGD([layers[0].weight, *layers[first].parameters()], lr=0.1)
    optimizer.add_param_group({"params": layers[second].parameters()})
    text = "a model of 10 parameters and an optimizer with groups of [3, 2]"
    return Case(nn.Sequential(*layers), optimizer, text=text)


def uncleared_reference(model: nn.Module, optimizer: Optimizer) -> list[str]:
    """Fill every .grad, clear, and see what is left."""
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.zero_grad()
    return sorted(name for name, parameter in model.named_parameters() if parameter.grad is not None)


def uncleared_observe(answer: Callable[..., object], model: nn.Module, optimizer: Optimizer) -> object:
    """Return the names in order, whatever they come in."""
    said = answer(model, optimizer)
    if not isinstance(said, Iterable) or isinstance(said, (str, Tensor)):
        return said
    names = list(islice(said, 100))  # what yields for ever is not waited for
    return sorted(names) if all(isinstance(name, str) for name in names) else names


def names_where(chosen: Callable[[Tensor, list[dict[str, Any]]], bool]) -> Callable[..., list[str]]:
    """Return an answer that names the parameters for which ``chosen(parameter, optimizer.param_groups)`` is true."""
    return lambda model, optimizer: [n for n, p in model.named_parameters() if chosen(p, optimizer.param_groups)]


def held(parameter: Tensor, groups: list[dict[str, Any]]) -> bool:
    return any(parameter is other for group in groups for other in group["params"])


uncleared = Definition(
    case=uncleared_case,
    reference=uncleared_reference,
    observe=uncleared_observe,
    mistakes={
        "the-others": names_where(held),
        "first-group": names_where(lambda p, groups: not held(p, groups[:1])),
        "same-values": names_where(lambda p, groups: not any(torch.equal(p, q) for g in groups for q in g["params"])),
        "frozen": names_where(lambda p, groups: not p.requires_grad),
        "nothing-there": lambda model, optimizer: [],
    },
)


def two_players_case(rng: random.Random) -> Case:
    generator = nn.Linear(2, 3)
    critic = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    lr = rng.uniform(0.1, 0.3)
    opt_g, opt_c = (torch.optim.SGD(model.parameters(), lr=lr) for model in (generator, critic))
    batches = [(torch.randn(8, 3) + 2, torch.randn(8, 2)) for _ in range(5)]
    text = f"five rounds at lr={lr:.3f}: these are the weights of both afterwards"
    arguments = (generator, critic, opt_g, opt_c, gan_loss, batches)
    return Case(*arguments, text=text, expect=lambda: by_hand(generator, critic, batches, lr))


def gan_loss(scores: Tensor, real: bool) -> Tensor:
    """Return the loss of calling pictures with these scores real or made."""
    return nn.functional.binary_cross_entropy_with_logits(scores, torch.full_like(scores, float(real)))


def by_hand(generator: nn.Module, critic: nn.Module, batches: list[tuple[Tensor, Tensor]], lr: float) -> Tensor:
    for real, noise in batches:
        sgd_step_by_hand(gan_loss(critic(generator(noise)), True), generator.parameters(), lr)
        loss = gan_loss(critic(real), True) + gan_loss(critic(generator(noise).detach()), False)
        sgd_step_by_hand(loss, critic.parameters(), lr)
    return all_weights(generator, critic)


def two_players_observe(answer: Callable[..., object], *arguments: Any) -> Tensor:
    answer(*arguments)
    return all_weights(*arguments[:2])


def loop(*lines: str) -> Callable[..., None]:
    """Return a loop whose rounds consist of these parts, in this order."""

    def run(generator: nn.Module, critic: nn.Module, opt_g: Any, opt_c: Any, gan_loss: Any, batches: Any) -> None:
        for real, noise in batches:
            for line in lines:
                if line == "generator":
                    opt_g.zero_grad()
                    gan_loss(critic(generator(noise)), True).backward()
                    opt_g.step()
                elif line == "real":
                    gan_loss(critic(real), True).backward()
                elif line == "made":
                    gan_loss(critic(generator(noise).detach()), False).backward()
                elif line == "step":
                    opt_c.step()
                else:
                    opt_c.zero_grad()

    return run


two_players = Definition(
    case=two_players_case,
    observe=two_players_observe,
    mistakes={
        "still-at-the-end": loop("generator", "real", "made", "step", "clear"),
        "never-cleared": loop("generator", "real", "made", "step"),
        "half-lost": loop("generator", "real", "clear", "made", "step"),
        "critic-stands-still": loop("generator", "real", "made", "clear", "step"),
        "critic-first": loop("clear", "real", "made", "step", "generator"),
    },
    rounds=3,
    axes=("weight, generator then critic", "its value afterwards"),
)


STANDARD = ("zero", "forward", "backward", "step")


def trains_case(rng: random.Random) -> Case:
    order = list(STANDARD) if rng.random() < 0.1 else rng.sample(STANDARD, 4)
    return Case(order, text=" > ".join(order))


@cache
def as_standard(order: tuple[str, ...]) -> bool:
    """Whether four rounds in this order end at the weights of the standard loop after three or four."""
    try:
        return any(torch.allclose(after(order, 4), after(STANDARD, rounds)) for rounds in (3, 4))
    except RuntimeError:
        return False


def after(order: tuple[str, ...], rounds: int) -> Tensor:
    """Return the weights after a loop in this order; a forward comes before it where backward would find no loss."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.linspace(-0.5, 0.7, parameter.numel()).view_as(parameter))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = iter(torch.linspace(-1, 1, 8 * 5 * 3).view(8, 5, 3))
    before = () if follow(order, "forward", "backward") else ("forward",)
    for line in before + order * rounds:
        if line == "zero":
            optimizer.zero_grad()
        elif line == "forward":
            loss = model(next(batches)).square().mean()
        elif line == "backward":
            loss.backward()
        else:
            optimizer.step()
    return all_weights(model)


def follow(order: list[str] | tuple[str, ...], *lines: str) -> bool:
    """Whether these lines come one after the other, others between them or not."""
    return [line for line in order if line in lines] == list(lines)


def turned(order: list[str], start: str) -> list[str]:
    """Return the order rotated so that it begins with this line."""
    at = order.index(start)
    return order[at:] + order[:at]


trains = Definition(
    case=trains_case,
    reference=lambda order: as_standard(tuple(order)),
    mistakes={
        "standard-only": lambda order: order == list(STANDARD),
        "one-ring": lambda order: turned(order, "zero") == list(STANDARD),
        "as-written": lambda order: (
            follow(order, "forward", "backward", "step") and not follow(order, "backward", "zero", "step")
        ),
        "zero-as-written": lambda order: not follow(order, "backward", "zero", "step"),
        "forward-between": lambda order: follow(turned(order, "backward"), "step", "zero"),
        "all": lambda order: True,
        "none": lambda order: False,
    },
    rounds=100,
)
