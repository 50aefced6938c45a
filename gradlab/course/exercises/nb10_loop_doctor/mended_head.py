"""The exercise ``mended_head``."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ....doctor import watch
from ..alike import alike
from ..brief import brief
from ..definition import Case, Definition
from ..loops import all_weights, sgd_step_by_hand

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


def case(rng: random.Random) -> Case:
    body, head = nn.Sequential(nn.Linear(6, 12), nn.Tanh()), nn.Linear(12, 3)
    batches = [(torch.randn(8, 6), torch.randint(3, (8,))) for _ in range(BATCHES)]
    lr = rng.uniform(0.3, 0.5)
    return Case(body, head, nn.functional.cross_entropy, batches, lr, text=f"{BATCHES} batches and lr={lr:.3f}")


def reference(body: nn.Module, head: nn.Module, loss_fn: Any, batches: Any, lr: float) -> Outcome:
    model, losses = nn.Sequential(body, head), []
    for t, (x, y) in enumerate(batches):
        loss = loss_fn(model(x), y)
        sgd_step_by_hand(loss, model.parameters(), lr * 0.99**t)
        losses.append(loss.item())
    return Outcome(all_weights(model), mean(losses), [])


def observe(answer: Callable[..., object], body: nn.Module, head: nn.Module, *arguments: object) -> Outcome:
    """Run it while the doctor watches; hints do not count."""
    with warnings.catch_warnings(), watch() as report:
        warnings.simplefilter("ignore")  # PyTorch notices one of the mistakes, too
        loss = answer(body, head, *arguments)
    findings = [(finding.code, finding.line or 0) for finding in report if finding.severity != "hint"]
    return Outcome(all_weights(nn.Sequential(body, head)), loss, findings)


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


DEFINITION = Definition(
    case=case,
    reference=reference,
    observe=observe,
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
    seconds=20.0,  # the doctor watches
)
