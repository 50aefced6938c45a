"""The checks of the exercises in notebook 06; ``nb06.md`` has their tasks, hints and solutions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..figures.curves import CourseFigure, bowl_steps
from .checking import Case, Definition, variant


def decay_groups_case(rng: random.Random) -> Case:
    width = rng.randrange(3, 6)
    model = nn.Sequential(nn.Linear(4, width), nn.LayerNorm(width), nn.Linear(width, 2))
    for parameter in model.parameters():
        nn.init.ones_(parameter)
    decay = round(rng.uniform(0.1, 0.9), 2)
    text = f"weight_decay={decay}: this is left of each after one step of AdamW with lr=1 and no gradient"
    return (model, decay), text


def decay_groups_observe(answer: Callable[..., Any], model: nn.Module, decay: float) -> Any:
    """Return each parameter's first element after an AdamW step on zero gradients, or nan if it is in no group."""
    groups = answer(model, decay)
    if not isinstance(groups, (list, tuple)) or not all(isinstance(g, dict) and "params" in g for g in groups):
        return groups
    groups = [{**group, "params": list(group["params"])} for group in groups]
    grouped = {id(p) for group in groups for p in group["params"]}
    optimizer = torch.optim.AdamW(groups, lr=1.0)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    return {name: p.flatten()[0].item() if id(p) in grouped else math.nan for name, p in model.named_parameters()}


decay_groups = Definition(
    case=decay_groups_case,
    observe=decay_groups_observe,
    mistakes={
        "by-name": variant(
            "decay_groups",
            ("p in model.parameters()", "name, p in model.named_parameters()"),
            ("p.dim() >= 2", '"bias" not in name'),
            ("p.dim() < 2", '"bias" in name'),
        ),
        "left-out": variant("decay_groups", (', {"params": others, "weight_decay": 0.0}', "")),
        "default-decay": variant("decay_groups", (', "weight_decay": 0.0', "")),
    },
    rounds=4,
)


def momentum_step_case(rng: random.Random) -> Case:
    grads = [round(rng.uniform(-2, 2), 2) for _ in range(8)]
    lrs = [round(rng.uniform(0.05, 0.5), 2) for _ in range(8)]
    w, beta = round(rng.uniform(-3, 3), 2), round(rng.uniform(0.5, 0.95), 2)
    text = f"w={w}, beta={beta}, grads that begin {grads[0]}, {grads[1]}, lrs that begin {lrs[0]}, {lrs[1]}"
    return (w, grads, lrs, beta), text


def momentum_step_observe(step: Callable[..., Any], w: Any, grads: list[float], lrs: list[float], beta: float) -> Any:
    """Return a list of the weight after each call to ``step``, with a momentum buffer that starts at 0."""
    v, reached = 0.0, []
    for g, lr in zip(grads, lrs, strict=True):
        w, v = step(w, v, g, lr, beta)
        reached.append(w)
    return reached


def momentum_step_draw(step: Callable[..., Any]) -> CourseFigure:
    """Draw eight steps of an answer on a bowl-shaped loss, in front of the steps of PyTorch's SGD with momentum."""
    curvatures, weights = torch.tensor([1.0, 0.1]), torch.tensor([-1.6, 1.3])
    on_bowl = lambda w, v, g, lr, beta: step(w.clone(), v, curvatures * w, lr, beta)  # noqa: E731 - slope replaces g
    yours = momentum_step_observe(on_bowl, weights.clone(), [0.0] * 8, [0.3] * 8, 0.9)
    optimizer, reached = torch.optim.SGD([weights], lr=0.3, momentum=0.9), []
    for _ in range(8):
        weights.grad = curvatures * weights
        optimizer.step()
        reached.append(weights.clone())
    return bowl_steps({"momentum 0.9, lr 0.3, 8 steps": {"yours": yours, "PyTorch": reached}})


momentum_step = Definition(
    case=momentum_step_case,
    observe=momentum_step_observe,
    draw=momentum_step_draw,
    mistakes={
        "no-momentum": lambda w, v, g, lr, beta: (w - lr * g, v),
        "old-buffer": lambda w, v, g, lr, beta: (w - lr * v, beta * v + g),
        "lr-inside": lambda w, v, g, lr, beta: (w - beta * v - lr * g, beta * v + lr * g),
        "averaged": lambda w, v, g, lr, beta: (w - lr * (beta * v + (1 - beta) * g), beta * v + (1 - beta) * g),
    },
)


def adamw_path_case(rng: random.Random) -> Case:
    grads: list[float | None] = [round(rng.choice((-1, 1)) * rng.uniform(0.2, 3), 2) for _ in range(10)]
    gaps = sorted(rng.sample(range(1, 9), 3))
    for gap in gaps:
        grads[gap] = None
    w = round(rng.choice((-1, 1)) * rng.uniform(1, 3), 2)
    lr, decay = round(rng.uniform(0.05, 0.3), 2), round(rng.uniform(0.1, 0.5), 2)
    begin, where = ", ".join(map(str, grads[:3])), ", ".join(map(str, gaps))
    text = f"w={w}, lr={lr}, weight_decay={decay}, grads that begin {begin}, with gaps at {where}"
    return (w, grads, lr, decay), text


adamw_path = Definition(
    case=adamw_path_case,
    mistakes={
        "no-correction": variant("adamw_path", (" / (1 - beta1**t)", ""), (" / (1 - beta2**t)", "")),
        "in-gradient": variant("adamw_path", ("w -= lr * weight_decay * w", "g += weight_decay * w")),
        "none-is-zero": variant("adamw_path", ("in grads", "in [g or 0.0 for g in grads]")),
    },
)
