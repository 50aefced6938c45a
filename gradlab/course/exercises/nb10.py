"""The exercises of notebook 10."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from ..._checks import brief
from ...doctor import watch
from .comparing import alike
from .definition import Case, Definition
from .loops import all_weights, sgd_step_by_hand


def stale_steps_case(rng: random.Random) -> Case:
    history = rng.choices(("zero", "backward", "backward", "step", "step"), k=rng.randint(4, 16))
    return Case(history, text=" ".join(history))


def stale_steps_reference(history: list[str]) -> list[int]:
    """Let PyTorch say it: backward number k adds the bit 2**k to .grad."""
    weight, applied, stale = torch.zeros((), dtype=torch.float64, requires_grad=True), 0, []
    for k, call in enumerate(history):
        if call == "zero":
            weight.grad = None
        elif call == "backward":
            (weight * 2**k).backward()
        else:
            held = 0 if weight.grad is None else int(weight.grad)
            stale.append(held & applied)
            applied |= held
    return [number for number, old in enumerate(stale, 1) if old]


def stale_steps_observe(answer: Callable[[list[str]], Any], history: list[str]) -> object:
    """Take anything that yields numbers."""
    given = answer(history)
    plain = hasattr(given, "__next__") or isinstance(given, (set, range))
    return list(islice(given, len(history) + 1)) if plain else given


def steps(history: Iterable[str], wanted: Callable[[list[bool]], bool] = any) -> list[int]:
    """Return the numbers of the steps that are wanted, by what is in .grad: of each gradient, whether it is used."""
    number, used, found = 0, list[bool](), []
    for call in history:
        if call == "zero":
            used = []
        elif call == "backward":
            used.append(False)
        else:
            number += 1
            found += [number] * wanted(used)
            used = [True] * len(used)
    return found


def places(history: list[str]) -> list[int]:
    return [place for place, call in enumerate(history) if call == "step"]


stale_steps = Definition(
    case=stale_steps_case,
    reference=stale_steps_reference,
    observe=stale_steps_observe,
    mistakes={
        "windows": lambda history: steps(history, lambda used: len(used) > 1),
        "never-clears": lambda history: steps(call for call in history if call != "zero"),
        "from-zero": lambda history: [number - 1 for number in steps(history)],
        "places": lambda history: [places(history)[number - 1] for number in steps(history)],
        "the-others": lambda history: steps(history, lambda used: not any(used)),
        "new-ones-only": lambda history: steps(history, lambda used: any(used) and not all(used)),
        # as if every step found a gradient
        "empty": lambda history: steps(" ".join(history).replace("step", "backward step").split()),
    },
    plot_values=lambda value: None,  # numbers of steps are names, not heights
    rounds=60,
)


BATCHES = 40  # enough for the doctor to be sure


@dataclass(eq=False)
class Outcome:
    """A trained model's weights, the loss that the loop returns, and the doctor's findings as codes and lines."""

    weights: Tensor
    loss: object
    findings: list[tuple[str, int]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcome) and alike(self._compared(), other._compared(), relative=1e-5, absolute=1e-4)

    def _compared(self) -> tuple[object, ...]:
        return self.weights, number(self.loss), {code for code, _ in self.findings}

    def __repr__(self) -> str:
        if self.findings:
            code, line = self.findings[0]
            return f"{len(self.findings)} of the doctor's findings, first {code} in line {line}"
        mean = number(self.loss)
        said = f"a mean loss of {mean:.4f}" if mean is not None else f"no mean loss but {brief(self.loss)}"
        return f"no findings, weights of norm {self.weights.norm():.3f}, {said}"


def number(value: object) -> float | None:
    """Return a number that hangs on no graph, None for anything else."""
    if isinstance(value, Tensor) and value.numel() == 1 and not value.requires_grad:
        value = value.item()
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def mended_head_case(rng: random.Random) -> Case:
    body, head = nn.Sequential(nn.Linear(6, 12), nn.Tanh()), nn.Linear(12, 3)
    batches = [(torch.randn(8, 6), torch.randint(3, (8,))) for _ in range(BATCHES)]
    lr = rng.uniform(0.3, 0.5)
    return Case(body, head, nn.functional.cross_entropy, batches, lr, text=f"{BATCHES} batches and lr={lr:.3f}")


def mended_head_reference(body: nn.Module, head: nn.Module, loss_fn: Any, batches: Any, lr: float) -> Outcome:
    model, losses = nn.Sequential(body, head), []
    for t, (x, y) in enumerate(batches):
        loss = loss_fn(model(x), y)
        sgd_step_by_hand(loss, model.parameters(), lr * 0.99**t)
        losses.append(loss.item())
    return Outcome(all_weights(model), mean(losses), [])


def mended_head_observe(answer: Callable[..., object], body: nn.Module, head: nn.Module, *arguments: object) -> Outcome:
    """Run it while the doctor watches; hints do not count."""
    with warnings.catch_warnings(), watch() as report:
        warnings.simplefilter("ignore")  # PyTorch notices one of the mistakes, too
        loss = answer(body, head, *arguments)
    findings = [(finding.code, finding.line or 0) for finding in report if finding.severity != "hint"]
    return Outcome(all_weights(body, head), loss, findings)


def mean(losses: list[Any]) -> Any:
    return sum(losses) / len(losses)


def loop(
    *,
    whole: bool = True,
    early: bool = False,
    gamma: float = 0.99,
    kept: Callable[[Tensor], Any] = Tensor.item,
    result: Callable[[list[Any]], Any] = mean,
) -> Callable[..., Any]:
    """Return the loop that is asked for, or one with mistakes of the stub left in it, or with new ones."""

    def run(body: nn.Module, head: nn.Module, loss_fn: Any, batches: Any, lr: float) -> Any:
        model, losses = nn.Sequential(body, head), []
        optimizer = torch.optim.SGD((model if whole else body).parameters(), lr=lr)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=gamma)
        for x, y in batches:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            for each in (scheduler, optimizer) if early else (optimizer, scheduler):
                each.step()
            losses.append(kept(loss))
        return result(losses)

    return run


mended_head = Definition(
    case=mended_head_case,
    reference=mended_head_reference,
    observe=mended_head_observe,
    mistakes={
        "head-left-out": loop(whole=False),
        "scheduler-first": loop(early=True),
        "history-kept": loop(kept=lambda loss: loss),
        "lr-stays": loop(gamma=1.0),
        "ten-percent": loop(gamma=0.9),
        "sum": loop(result=sum),
        "last": loop(result=lambda losses: losses[-1]),
        "last-divided": loop(result=lambda losses: losses[-1] / len(losses)),
    },
    rounds=2,
)


def leak_case(rng: random.Random) -> Case:
    """Return bytes alive: a base, a warm-up, an epoch's shorter last batch, and what is lost."""
    lost = 0 if rng.random() < 0.15 else rng.randrange(500, 60_000)
    # 10, 20 and 25 divide 200: then the last batch is a short one, and that is what tells the mistakes apart.
    epoch = rng.choice((10, 20, 25)) if rng.random() < 0.7 else rng.randrange(9, 30)
    base, state, less = rng.randrange(10**6, 10**7), rng.randrange(10**6, 10**7), rng.randrange(10**4, 10**6)
    alive = [base + state * min(t, 3) // 3 - less * ((t + 1) % epoch == 0) + lost * t for t in range(200)]
    begin = ", ".join(f"{size:,}" for size in alive[:4])
    return Case(alive, text=f"bytes that begin {begin} ...", expect=lost)


def differences(alive: Sequence[int]) -> list[int]:
    return [later - before for before, later in pairwise(alive)]


leak = Definition(
    case=leak_case,
    mistakes={
        "warm-up": lambda alive: (alive[-1] - alive[0]) / 199,
        "total": lambda alive: alive[-1] - alive[0],
        "range": lambda alive: max(alive) - min(alive),
        "largest": lambda alive: max(differences(alive)),
        "last": lambda alive: alive[-1] - alive[-2],
        "two-ends": lambda alive: (alive[-1] - alive[100]) / 99,
        "sign": lambda alive: -median(differences(alive)),
    },
    rounds=25,  # range and total differ only where the last batch is a short one, and much shorter
    relative=0.03,
    absolute=5.0,
)
