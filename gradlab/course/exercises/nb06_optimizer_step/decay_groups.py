"""The exercise ``decay_groups``."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from ..definition import Case, Definition

Groups = list[dict[str, Any]]


def case(rng: random.Random) -> Case:
    """Return a model whose weights are all 1, and a decay."""
    width = rng.randrange(3, 6)
    model = nn.Sequential(nn.Linear(4, width), nn.LayerNorm(width), nn.Linear(width, 2))
    for parameter in model.parameters():
        nn.init.ones_(parameter)
    decay = round(rng.uniform(0.1, 0.9), 2)
    text = f"weight_decay={decay}: this is left of each after one step of AdamW with lr=1 and no gradient"
    left = {name: 1 - decay if p.dim() > 1 else 1.0 for name, p in model.named_parameters()}
    return Case(model, decay, text=text, expect=left)


def observe(answer: Callable[..., Any], model: nn.Module, decay: float) -> Any:
    """Let AdamW step once on zero gradients, so that only the decay moves anything; nan for what is in no group."""
    groups = answer(model, decay)
    if not isinstance(groups, (list, tuple)) or not all(isinstance(g, dict) and "params" in g for g in groups):
        return groups
    groups = [{**group, "params": listed(group["params"])} for group in groups]
    held = {id(p) for group in groups for p in group["params"]}
    optimizer = torch.optim.AdamW(groups, lr=1.0)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    return {name: p.flatten()[0].item() if id(p) in held else math.nan for name, p in model.named_parameters()}


def listed(params: Any) -> list[Any]:
    return list(params) if isinstance(params, Iterable) and not isinstance(params, Tensor) else [params]


def split(model: nn.Module, decay: float, decays: Callable[[str, Tensor], bool], **others: float) -> Groups:
    named = list(model.named_parameters())
    decayed = {"params": [p for name, p in named if decays(name, p)], "weight_decay": decay}
    return [decayed, {"params": [p for name, p in named if not decays(name, p)], **others}]


DEFINITION = Definition(
    case=case,
    observe=observe,
    mistakes={
        "by-name": lambda model, decay: split(model, decay, lambda name, p: "bias" not in name, weight_decay=0.0),
        "left-out": lambda model, decay: split(model, decay, lambda name, p: p.dim() > 1)[:1],
        "default-decay": lambda model, decay: split(model, decay, lambda name, p: p.dim() > 1),
        "swapped": lambda model, decay: split(model, decay, lambda name, p: p.dim() < 2, weight_decay=0.0),
        "all": lambda model, decay: split(model, decay, lambda name, p: True),
    },
    rounds=4,
    axes=("", "left of a weight of 1"),
)
