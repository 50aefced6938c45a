"""The exercise ``decay_groups``: spare the biases."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from ..base import Exercise, Mistake


def _split(keep: Callable[[str, nn.Parameter], bool], spared: float | None = 0.0) -> Callable[..., Any]:
    """Return an answer that decays the parameters that ``keep`` picks; ``spared`` is the decay of the others."""

    def split(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
        named = list(model.named_parameters())
        rest: dict[str, Any] = {"params": [p for name, p in named if not keep(name, p)]}
        if spared is not None:
            rest["weight_decay"] = spared
        return [{"params": [p for name, p in named if keep(name, p)], "weight_decay": weight_decay}, rest]

    return split


def _only(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Leave the spared ones out."""
    return _split(lambda name, p: p.dim() > 1)(model, weight_decay)[:1]


class DecayGroups(Exercise):
    """Two parameter groups, one of them without decay."""

    name = "decay_groups"
    notebook = "06_optimizer_step"
    title = "Spare the biases"
    level, minutes = "easy", 5
    spec = (
        "Write `decay_groups(model, weight_decay)`: return a list of two parameter groups, one that decays every "
        "tensor of two or more dimensions and one that holds all the others with a decay of 0."
    )
    stub = """
def decay_groups(model, weight_decay):
    return None  # your answer: a list of two dicts
"""
    hints = (
        "A group is a dict: `params` is a list of parameters, and every other key is a setting of that group.",
        'One of the two is `{"params": [...], "weight_decay": 0.0}`. Which parameters have `p.dim() < 2`?',
        "Go by the number of dimensions and not by the name: the weight of a LayerNorm is a row, too.",
    )
    mistakes = (
        Mistake(
            "by-name",
            "You go by the name `bias`: the weight of the LayerNorm is a row as well, and must be spared.",
            _split(lambda name, p: "bias" not in name),
        ),
        Mistake(
            "left-out",
            "The others are in no group now: the optimizer never moves them, and never says so.",
            _only,
        ),
        Mistake(
            "default-decay",
            "The second group does not set its decay, so it takes the optimizer's default, and for AdamW that is 0.01.",
            _split(lambda name, p: p.dim() > 1, spared=None),
        ),
        Mistake(
            "swapped",
            "The other way round: now the matrices are spared, and the rest decays.",
            _split(lambda name, p: p.dim() < 2),
        ),
        Mistake("all", "Now everything decays, the biases included.", _split(lambda name, p: True)),
    )
    rounds = 4
    axes = ("", "left of a weight of 1")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a model whose weights are all 1, and a decay."""
        wide = dice.randrange(3, 6)
        model = nn.Sequential(nn.Linear(4, wide), nn.LayerNorm(wide), nn.Linear(wide, 2))
        for parameter in model.parameters():
            nn.init.ones_(parameter)
        return model, round(dice.uniform(0.1, 0.9), 2)

    def right(self, model: nn.Module, weight_decay: float) -> Any:
        """Say what is left of each: a decay beside the gradient takes lr times decay, and lr is 1."""
        return {name: 1 - weight_decay if p.dim() > 1 else 1.0 for name, p in model.named_parameters()}

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Let AdamW step once on zero gradients, so that only the decay moves anything."""
        model, weight_decay = arguments
        groups = answer(model, weight_decay) if callable(answer) else answer
        if not isinstance(groups, (list, tuple)) or not all(isinstance(g, dict) and "params" in g for g in groups):
            return groups
        groups = [{**group, "params": _listed(group["params"])} for group in groups]
        held = {id(p) for group in groups for p in group["params"]}
        optimizer = torch.optim.AdamW(groups, lr=1.0)
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        return {
            # In no group at all shows as nan: it is neither decayed nor spared.
            name: p.detach().reshape(-1)[0].item() if id(p) in held else math.nan
            for name, p in model.named_parameters()
        }

    def told(self, *arguments: Any) -> str:
        """Say what the numbers are."""
        return f"weight_decay={arguments[1]}: this is left of each after one step of AdamW with lr=1 and no gradient"


def _listed(params: Any) -> list[Any]:
    return [params] if isinstance(params, torch.Tensor) or not isinstance(params, Iterable) else list(params)
