"""The checks of the exercises in notebook 10; ``nb10.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import Tensor, nn

from ... import tasks
from .checking import Case, Definition, variant
from .mending import Mending


def reusing_steps_case(rng: random.Random) -> Case:
    history = rng.choices(("zero", "backward", "backward", "step", "step"), k=rng.randint(4, 16))
    return (history,), " ".join(history)


reusing_steps = Definition(
    case=reusing_steps_case,
    mistakes={
        "windows": variant("reusing_steps", ('"old" in inside', "len(inside) > 1")),
        "never-clears": variant("reusing_steps", ("inside = []\n", "pass\n")),
        "from-zero": variant("reusing_steps", ("append(number)", "append(number - 1)")),
    },
    rounds=60,
)


def digits() -> tuple[nn.Module, Any, list[tuple[Tensor, Tensor]]]:
    task = tasks.digits(device="cpu")
    return task.build(seed=0), task.loss_fn, [(x.clone(), y.clone()) for x, y in task.batches]


def micro_batches() -> tuple[object, ...]:
    """Return the same objects as ``digits``, but with each batch split into four micro-batches."""
    model, loss_fn, batches = digits()
    return model, loss_fn, [pair for x, y in batches for pair in zip(x.split(16), y.split(16), strict=True)]


def noisy_digits() -> tuple[object, ...]:
    """Return a network with dropout, a loss function, two batches (30% random labels), and held-out x and y."""
    _, loss_fn, batches = digits()
    held_out = tasks.digits(device="cpu").held_out
    assert held_out is not None
    generator, noisy = torch.Generator().manual_seed(0), []
    for x, y in batches[:2]:
        wrong = torch.rand(len(y), generator=generator) < 0.3
        noisy.append((x, torch.where(wrong, torch.randint(10, y.shape, generator=generator), y)))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 10))
    return model, loss_fn, noisy, *held_out


def body_and_head() -> tuple[object, ...]:
    """Return a body, a head, a loss function, 40 batches with the argmax of 3 inputs as target, and a learning rate."""
    batches = [(x, x[:, :3].argmax(1)) for x in torch.randn(40, 8, 6)]
    return nn.Sequential(nn.Linear(6, 12), nn.Tanh()), nn.Linear(12, 3), nn.functional.cross_entropy, batches, 0.4


mend_the_swinging_loss = Mending(digits)
mend_four_times_the_work = Mending(micro_batches)
mend_killed_at_night = Mending(digits)
mend_the_flat_loss = Mending(digits)
mend_learned_by_heart = Mending(noisy_digits, validates=True)
mended_head = Mending(body_and_head)
