"""The exercises of notebook 06."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from .base import Exercise, Mistake

_HOME = "06_optimizer_step"


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
    notebook = _HOME
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


def _momentum(form: str) -> Callable[..., list[float]]:
    """Return momentum in a form that is wrong in one respect."""

    def walk(w: float, grads: list[float], lrs: list[float], beta: float) -> list[float]:
        v, walked = 0.0, []
        for g, lr in zip(grads, lrs, strict=True):
            if form == "inside":
                v = beta * v + lr * g
                step = v
            else:
                v = beta * v + {"averaged": (1 - beta) * g}.get(form, g)
                step = lr * {"nesterov": g + beta * v, "plain": g}.get(form, v)
            w -= -step if form == "uphill" else step
            walked.append(w)
        return walked

    return walk


class MomentumPath(Exercise):
    """Momentum in PyTorch's form, where a schedule shows which form it is."""

    name = "momentum_path"
    notebook = _HOME
    title = "Momentum with a schedule"
    level, minutes = "medium", 7
    spec = (
        "Write `momentum_path(w, grads, lrs, beta)`: `torch.optim.SGD` with momentum `beta` moves one weight, a number "
        "that starts at `w`; update i finds the gradient `grads[i]` and the lr `lrs[i]`; return the list of where the "
        "weight is after each update."
    )
    stub = """
def momentum_path(w, grads, lrs, beta):
    return None  # your answer: a list, w after each update
"""
    hints = (
        "Walk through both lists at once: `for g, lr in zip(grads, lrs):`, with a buffer that starts at 0.",
        "Two lines an update: first the buffer, then the weight. In which of the two does PyTorch have the lr?",
        "The buffer is `v = beta * v + g`. The lr is outside.",
    )
    mistakes = (
        Mistake(
            "lr-inside",
            "Your lr is inside the buffer: what was mixed in under an old lr keeps it. In PyTorch the lr is outside.",
            _momentum("inside"),
        ),
        Mistake(
            "averaged",
            "You mix in (1 - beta) times the gradient, as Adam does. SGD's buffer takes all of it.",
            _momentum("averaged"),
        ),
        Mistake("no-momentum", "That is plain SGD: the buffer has no say.", _momentum("plain")),
        Mistake(
            "nesterov", "That is Nesterov's form, `nesterov=True`: move by the buffer alone.", _momentum("nesterov")
        ),
        Mistake("uphill", "That goes uphill: the step is subtracted.", _momentum("uphill")),
    )
    axes = ("update", "weight")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a start, gradients, lrs that differ, and a beta."""
        many = dice.randrange(6, 12)
        grads = [round(dice.uniform(-2, 2), 2) for _ in range(many)]
        lrs = [round(dice.uniform(0.05, 0.5), 2) for _ in range(many)]
        return round(dice.uniform(-3, 3), 2), grads, lrs, round(dice.uniform(0.5, 0.95), 2)

    def right(self, w: float, grads: list[float], lrs: list[float], beta: float) -> Any:
        """Ask torch.optim.SGD."""
        return _walked(lambda p: torch.optim.SGD(p, lr=1.0, momentum=beta), w, grads, lrs)

    def told(self, *arguments: Any) -> str:
        """Show how it begins."""
        w, grads, lrs, beta = arguments
        return f"w={w}, beta={beta}, grads that begin {grads[0]}, {grads[1]}, lrs that begin {lrs[0]}, {lrs[1]}"


def _adamw(form: str) -> Callable[..., list[float]]:
    """Return AdamW in a form that is wrong in one respect."""

    def walk(
        w: float,
        grads: list[float | None],
        lr: float,
        weight_decay: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
    ) -> list[float]:
        m = v = 0.0
        t, walked = 0, []
        for grad in grads:
            if grad is None and form != "none-is-zero":
                if form == "decays-always":
                    w -= lr * weight_decay * w
                t += form == "counts-gaps"
                walked.append(w)
                continue
            g = grad or 0.0
            t += 1
            if form == "in-gradient":
                g += weight_decay * w
            elif form != "no-decay":
                w -= weight_decay * w * (1 if form == "decay-without-lr" else lr)
            m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
            one, two = (1.0, 1.0) if form == "no-correction" else (1 - beta1**t, 1 - beta2**t)
            w -= lr * (m / one) / (math.sqrt(v / two) + eps)
            walked.append(w)
        return walked

    return walk


class AdamWPath(Exercise):
    """AdamW from memory, and what it does where there is no gradient."""

    name = "adamw_path"
    notebook = _HOME
    title = "AdamW, with gaps"
    level, minutes = "harder", 13
    spec = (
        "Write `adamw_path(w, grads, lr, weight_decay, beta1, beta2, eps)`: `torch.optim.AdamW` moves one weight, a "
        "number that starts at `w`; update i finds `grads[i]` in `.grad`, a number or None; return the list of where "
        "the weight is after each update."
    )
    stub = """
def adamw_path(w, grads, lr, weight_decay, beta1=0.9, beta2=0.999, eps=1e-8):
    return None  # your answer: a list, w after each update
"""
    hints = (
        "Three notes: `m`, `v` and the count `t` of the steps. The decay comes first and has nothing to do with them.",
        "What does step() do with a parameter whose .grad is None? All of nothing: look at `ByHand` again.",
        "A gap changes neither w, nor m, nor v, nor t. But the list gets an entry for it.",
        "`w -= lr * weight_decay * w`, then Adam: divide m by `1 - beta1**t` and v by `1 - beta2**t`, take the root "
        "of v, add eps.",
    )
    mistakes = (
        Mistake(
            "no-correction",
            "The bias correction is missing: your first steps are too long. "
            "Divide m and v by the share that they have reached.",
            _adamw("no-correction"),
        ),
        Mistake(
            "in-gradient",
            "You add the decay to the gradient: that is `Adam(weight_decay=...)`. AdamW keeps it beside.",
            _adamw("in-gradient"),
        ),
        Mistake("no-decay", "That is Adam: where is the weight decay?", _adamw("no-decay")),
        Mistake(
            "decay-without-lr",
            "The weight shrinks by weight_decay each update; in PyTorch it shrinks by lr times weight_decay.",
            _adamw("decay-without-lr"),
        ),
        Mistake(
            "none-is-zero",
            "You take None for 0. A parameter without a gradient is skipped: no step, no decay, no fading averages.",
            _adamw("none-is-zero"),
        ),
        Mistake(
            "counts-gaps",
            "Your t counts the gaps as well. AdamW counts the steps of a parameter, and a gap is none.",
            _adamw("counts-gaps"),
        ),
        Mistake(
            "decays-always",
            "The weight decays in the gaps, too. A parameter without a gradient is skipped, decay and all.",
            _adamw("decays-always"),
        ),
    )
    axes = ("update", "weight")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a start, gradients with gaps among them, an lr and a decay."""
        grads: list[float | None] = [round(dice.choice((-1, 1)) * dice.uniform(0.2, 3), 2) for _ in range(10)]
        for gap in dice.sample(range(1, 9), 3):
            grads[gap] = None
        start = round(dice.choice((-1, 1)) * dice.uniform(1, 3), 2)
        return start, grads, round(dice.uniform(0.05, 0.3), 2), round(dice.uniform(0.1, 0.5), 2)

    def right(self, w: float, grads: list[float | None], lr: float, weight_decay: float) -> Any:
        """Ask torch.optim.AdamW."""
        return _walked(lambda p: torch.optim.AdamW(p, lr=lr, weight_decay=weight_decay), w, grads)

    def told(self, *arguments: Any) -> str:
        """Show how it begins."""
        w, grads, lr, decay = arguments
        some = ", ".join(map(str, grads[:3]))
        return f"w={w}, lr={lr}, weight_decay={decay}, grads that begin {some}, with gaps at {_gaps(grads)}"


def _gaps(grads: list[float | None]) -> str:
    return ", ".join(str(at) for at, grad in enumerate(grads) if grad is None)


def _walked(make: Callable[[list[torch.Tensor]], torch.optim.Optimizer], w: float, grads: Any, lrs: Any = None) -> Any:
    """Return where an optimizer of torch.optim takes one weight, in double precision."""
    weight = torch.tensor([w], dtype=torch.float64, requires_grad=True)
    optimizer, walked = make([weight]), []
    for at, grad in enumerate(grads):
        weight.grad = None if grad is None else torch.tensor([grad], dtype=torch.float64)
        if lrs is not None:
            optimizer.param_groups[0]["lr"] = lrs[at]
        optimizer.step()
        walked.append(weight.item())
    return walked


EXERCISES = (DecayGroups, MomentumPath, AdamWPath)
