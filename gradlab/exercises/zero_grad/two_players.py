"""The exercise ``two_players``: mend the GAN."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import Tensor, nn

from ..base import Exercise, Mistake
from ..loops import descend, weights


def _gan(
    generator: nn.Module,
    critic: nn.Module,
    opt_g: Any,
    opt_c: Any,
    says: Any,
    batches: Any,
    *,
    clear: str = "end",
    first: str = "generator",
) -> None:
    """Train both; ``clear`` says where the critic's gradients are cleared."""

    def make(noise: Tensor) -> None:
        opt_g.zero_grad()
        says(critic(generator(noise)), True).backward()
        opt_g.step()

    for real, noise in batches:
        if first == "generator":
            make(noise)
        if clear == "start":
            opt_c.zero_grad()
        says(critic(real), True).backward()
        if clear == "middle":
            opt_c.zero_grad()
        says(critic(generator(noise).detach()), False).backward()
        if clear == "before step":
            opt_c.zero_grad()
        opt_c.step()
        if clear == "end":
            opt_c.zero_grad()
        if first == "critic":
            make(noise)


class TwoPlayers(Exercise):
    """A GAN whose critic steps with a gradient that is not its own."""

    name = "two_players"
    notebook = "04_zero_grad"
    title = "Mend the GAN"
    level, minutes = "medium", 8
    spec = (
        "Both networks clear once in each round, and still the critic's step uses a gradient that is not its own: "
        "mend the loop, and leave the generator's turn first."
    )
    stub = """
def two_players(generator, critic, opt_g, opt_c, says, batches):
    for real, noise in batches:
        opt_g.zero_grad()
        says(critic(generator(noise)), True).backward()
        opt_g.step()

        says(critic(real), True).backward()
        says(critic(generator(noise).detach()), False).backward()
        opt_c.step()
        opt_c.zero_grad()
"""
    hints = (
        "Go through one round. After which lines is there something in the critic's `.grad`?",
        "The generator's `backward()` leads through the critic. What it leaves there is still there when the critic's "
        "own `backward()` adds to it.",
        "Clear the critic's gradients after the generator's turn and before the critic's first `backward()`.",
    )
    mistakes = (
        Mistake(
            "still-at-the-end",
            "The critic is cleared before the generator's turn, or after its own step. What the generator's backward() "
            "leaves in it comes in between.",
            _gan,
        ),
        Mistake(
            "never-cleared",
            "Now the critic is never cleared, and old gradients pile up in it.",
            lambda *all: _gan(*all, clear="never"),
        ),
        Mistake(
            "half-lost",
            "You clear between the critic's two backward() calls: what it learned from the real ones is gone.",
            lambda *all: _gan(*all, clear="middle"),
        ),
        Mistake(
            "critic-stands-still",
            "You clear between the critic's backward() and its step(): it never moves.",
            lambda *all: _gan(*all, clear="before step"),
        ),
        Mistake(
            "critic-first",
            "A good loop, with the critic's turn first. Here the generator's turn comes first.",
            lambda *all: _gan(*all, clear="start", first="critic"),
        ),
    )
    rounds = 3
    axes = ("weight, generator then critic", "its value afterwards")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return two small networks, their optimizers, a loss and five batches."""
        generator = nn.Linear(2, 3)
        critic = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        lr = dice.uniform(0.1, 0.3)
        opt_g = torch.optim.SGD(generator.parameters(), lr=lr)
        opt_c = torch.optim.SGD(critic.parameters(), lr=lr)
        batches = [(torch.randn(8, 3) + 2, torch.randn(8, 2)) for _ in range(5)]
        return generator, critic, opt_g, opt_c, _says, batches

    def right(self, generator: nn.Module, critic: nn.Module, opt_g: Any, opt_c: Any, says: Any, batches: Any) -> Any:
        """Make each player's update by hand, which never touches .grad."""
        lr = opt_g.param_groups[0]["lr"]
        for real, noise in batches:
            descend(says(critic(generator(noise)), True), generator.parameters(), lr)
            made = generator(noise).detach()
            descend(says(critic(real), True) + says(critic(made), False), critic.parameters(), lr)
        return torch.cat([weights(generator), weights(critic)])

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the weights of both after the loop."""
        answer(*arguments)
        return torch.cat([weights(arguments[0]), weights(arguments[1])])

    def told(self, *arguments: Any) -> str:
        """Say what the weights belong to."""
        return f"five rounds at lr={arguments[2].param_groups[0]['lr']:.3f}: these are the weights of both afterwards"


def _says(scores: Tensor, real: bool) -> Tensor:
    """Return the loss of calling pictures with these scores real or made."""
    return nn.functional.binary_cross_entropy_with_logits(scores, torch.full_like(scores, float(real)))
