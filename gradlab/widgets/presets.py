"""Situations worth looking at, by name: a task, a recipe and the switches that matter."""

from __future__ import annotations

from dataclasses import dataclass

from ..loop import Recipe
from .controls import USUAL_SPEED


@dataclass(frozen=True)
class Preset:
    """What ``Lab.preset(name)`` sets up; ``say`` is what to watch for, ``speed`` one at which it can be seen."""

    task: str
    recipe: Recipe
    controls: tuple[str, ...]
    say: str
    speed: str = USUAL_SPEED


PRESETS = {
    "healthy": Preset(
        "digits",
        Recipe(lr=0.1),
        ("zero_grad", "set_to_none", "lr", "speed"),
        "The loss falls; .grad holds one batch at a time.",
    ),
    "forgot zero_grad": Preset(
        "digits",
        Recipe(zero_grad=False, lr=0.1),
        ("zero_grad", "lr", "speed"),
        "Old batches pile up in .grad, and the loss begins to swing.",
        "10 updates/s",
    ),
    "swing in a bowl": Preset(
        "bowl",
        Recipe(zero_grad=False, lr=0.2),
        ("zero_grad", "lr", "speed"),
        "The weights swing from side to side and never settle.",
        "10 updates/s",
    ),
    "accumulation": Preset(
        "line",
        Recipe(accumulate=4, lr=0.01),
        ("accumulate", "divide_loss", "zero_grad", "lr", "speed"),
        "Four arrows, head to tail, make one step.",
        "statements",
    ),
    "forgot to divide": Preset(
        "line",
        Recipe(accumulate=4, divide_loss=False, lr=0.01),
        ("accumulate", "divide_loss", "lr", "speed"),
        "The sum of four losses takes steps four times too long.",
        "10 updates/s",
    ),
    "fp16 overflow": Preset(
        "line",
        Recipe(amp="fp16", lr=0.01),
        ("amp", "clip", "lr", "zero_grad", "speed"),
        "At a scale of 65,536 the gradients overflow: steps are skipped, and the scale is halved until they fit.",
        "1 update/s",
    ),
}
