"""The exercises of notebook 04."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from .base import Exercise, Mistake
from .loops import descend, weights

_HOME = "04_zero_grad"
_MANY = 100  # more names than any model here has; what yields for ever is not waited for
_STANDARD = ("zero", "forward", "backward", "step")


def _names(model: nn.Module, optimizer: torch.optim.Optimizer, *, held: bool = False, groups: int | None = None) -> Any:
    """Return the names of the parameters that the first groups of the optimizer hold, or do not hold."""
    inside = {id(p) for group in optimizer.param_groups[:groups] for p in group["params"]}
    return [name for name, p in model.named_parameters() if (id(p) in inside) is held]


def _unlike(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[str]:
    """Return the names of the parameters whose values are nowhere in the optimizer."""
    inside = [p for group in optimizer.param_groups for p in group["params"]]
    return [name for name, p in model.named_parameters() if not any(torch.equal(p, other) for other in inside)]


class Uncleared(Exercise):
    """Two lists of parameters, and what is in one of them only."""

    name = "uncleared"
    notebook = _HOME
    title = "What the optimizer does not reach"
    level, minutes = "easy", 6
    spec = (
        "Write `uncleared(model, optimizer)`: a list of the names, as in `model.named_parameters()`, of the "
        "parameters that `optimizer.zero_grad()` does not reach."
    )
    stub = """
def uncleared(model, optimizer):
    return None  # your answer
"""
    hints = (
        "Where does an optimizer keep its parameters? Print `optimizer.param_groups` in a cell of your own.",
        "It is a list of dicts, one a group; each has its parameters under `'params'`. There may be several groups.",
        "`p in list` compares numbers, not tensors. Whether two are the same tensor is asked with `is`, or by `id(p)`.",
        "`held = {id(p) for group in optimizer.param_groups for p in group['params']}`; then go through "
        "`model.named_parameters()`.",
    )
    mistakes = (
        Mistake(
            "the-others",
            "Those are the ones that it does clear. The others are wanted.",
            lambda model, optimizer: _names(model, optimizer, held=True),
        ),
        Mistake(
            "first-group",
            "You looked into the first parameter group only; an optimizer may have more.",
            lambda model, optimizer: _names(model, optimizer, groups=1),
        ),
        Mistake(
            "same-values",
            "Two layers may hold the same numbers and still be two tensors. Compare with `is`, or by `id(p)`.",
            _unlike,
        ),
        Mistake(
            "frozen",
            "`requires_grad` says whether a gradient is computed, not whether the optimizer holds the parameter.",
            lambda model, optimizer: [name for name, p in model.named_parameters() if not p.requires_grad],
        ),
        Mistake(
            "nothing-there",
            "An empty list, always. If you call `zero_grad()` and look: put something into each `.grad` first.",
            lambda model, optimizer: [],
        ),
    )

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a model of five layers, one a copy of another, and an optimizer whose two groups lack some."""
        layers = [nn.Linear(2, 2) for _ in range(4)]
        layers.append(copy.deepcopy(layers[0]))
        first, second, *_ = dice.sample(range(1, 4), 3)
        layers[dice.choice((first, second))].requires_grad_(False)
        optimizer = torch.optim.SGD([layers[0].weight, *layers[first].parameters()], lr=0.1)
        optimizer.add_param_group({"params": layers[second].parameters()})
        return nn.Sequential(*layers), optimizer

    def right(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
        """Fill every .grad, clear, and see what is left."""
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimizer.zero_grad()
        return sorted(name for name, p in model.named_parameters() if p.grad is not None)

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the names in any order and of any kind of list."""
        said = answer(*arguments)
        plain = isinstance(said, Iterable) and not isinstance(said, (str, Tensor))
        said = list(islice(said, _MANY)) if plain else said
        return sorted(said) if plain and all(isinstance(name, str) for name in said) else said

    def told(self, *arguments: Any) -> str:
        """Say how much there is."""
        model, optimizer = arguments
        groups = [sum(1 for _ in group["params"]) for group in optimizer.param_groups]
        return f"a model of {len(list(model.parameters()))} parameters and an optimizer with groups of {groups}"


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
    notebook = _HOME
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


@cache
def _trains(order: tuple[str, ...]) -> bool:
    """Run a loop of four rounds in this order on a network of two layers, a loss given; see where its weights are."""

    def run(order: tuple[str, ...], rounds: int) -> Tensor:
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.linspace(-0.5, 0.7, parameter.numel()).view_as(parameter))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batches = iter(torch.linspace(-1, 1, 8 * 5 * 3).view(8, 5, 3))
        loss = model(next(batches)).square().mean() if order.index("backward") < order.index("forward") else None
        for _ in range(rounds):
            for word in order:
                if word == "zero":
                    optimizer.zero_grad()
                elif word == "forward":
                    loss = model(next(batches)).square().mean()
                elif word == "backward":
                    loss.backward()  # type: ignore[union-attr]
                else:
                    optimizer.step()
        return weights(model)

    try:
        mine = run(order, 4)
    except RuntimeError:
        return False
    return any(torch.allclose(mine, run(_STANDARD, rounds)) for rounds in (3, 4))


def _around(order: Any, start: str) -> tuple[str, ...]:
    """Return the order as it is met from one of its words on, going round."""
    at = list(order).index(start)
    return (*order[at:], *order[:at])


def _as_written(order: Any) -> bool:
    """Read the text once, from top to bottom."""
    zero, forward, backward, step = (list(order).index(word) for word in _STANDARD)
    return forward < backward < step and not backward < zero < step


def _not_cleared(order: Any) -> bool:
    """Ask only whether a gradient gets from backward to step."""
    turned = _around(order, "backward")
    return turned.index("step") < turned.index("zero")


class Trains(Exercise):
    """All 24 orders in one rule."""

    name = "trains"
    notebook = _HOME
    title = "The rule behind 24 orders"
    level, minutes = "harder", 10
    spec = (
        'Write `trains(order)`: True if a loop with its lines in this order, such as `["zero", "forward", "backward", '
        '"step"]`, and with a loss to begin with where it needs one, trains a deep network as the standard loop does '
        "(it may be one update late), False if not."
    )
    stub = """
def trains(order):
    return None  # your answer
"""
    hints = (
        "A loop goes round. Turn the list until it begins with the word that you want to begin with: "
        "`order[at:] + order[:at]`.",
        "Begin with backward. What must come directly after it, if nothing is to be lost and nothing outdated?",
        "Two rings train: zero, forward, backward, step, and forward, zero, backward, step. Look at what they share.",
    )
    mistakes = (
        Mistake(
            "standard-only",
            "You allow the standard order only, but a loop may begin at any of its lines.",
            lambda order: tuple(order) == _STANDARD,
        ),
        Mistake(
            "one-ring",
            "You allow the standard order and its turns. zero may also stand between forward and backward.",
            lambda order: _around(order, "zero") == _STANDARD,
        ),
        Mistake(
            "as-written",
            "You read the text once, from top to bottom. A loop goes round: after its last line comes its first.",
            _as_written,
        ),
        Mistake(
            "zero-as-written",
            "You ask only whether zero stands between backward and step in the text. A loop goes round: on the way "
            "from backward to the step of the next round something may be cleared, too.",
            lambda order: not order.index("backward") < order.index("zero") < order.index("step"),
        ),
        Mistake(
            "forward-between",
            "You ask only that nothing is cleared between backward and step. A forward between them prepares a "
            "backward that finds changed weights.",
            _not_cleared,
        ),
        Mistake("all", "True for every order? Most of them do not train.", lambda order: True),
        Mistake("none", "False for every order? The standard order is among them.", lambda order: False),
    )
    rounds = 100

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return one of the 24 orders, now and then the standard one."""
        return (list(_STANDARD) if dice.random() < 0.1 else dice.sample(_STANDARD, 4),)

    def right(self, order: Any) -> Any:
        """Run it."""
        return _trains(tuple(order))

    def told(self, *arguments: Any) -> str:
        """Write the order."""
        return " > ".join(arguments[0])


EXERCISES: tuple[type[Exercise], ...] = (Uncleared, TwoPlayers, Trains)
