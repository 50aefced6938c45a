"""The exercise ``two_players``."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..definition import Case, Definition
from ..loops import all_weights, sgd_step_by_hand


def case(rng: random.Random) -> Case:
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
    return all_weights(nn.ModuleList([generator, critic]))


def observe(answer: Callable[..., object], generator: nn.Module, critic: nn.Module, *others: object) -> Tensor:
    answer(generator, critic, *others)
    return all_weights(nn.ModuleList([generator, critic]))


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


DEFINITION = Definition(
    case=case,
    observe=observe,
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
