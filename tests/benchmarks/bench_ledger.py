"""What a Ledger costs per update, and how near it is to the allocator."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from ledger_cases import MODELS, Case, events
from torch import Tensor, nn

from gradlab import Ledger, Recipe, tasks

ROUNDS = 7


def digits() -> tuple[nn.Module, Tensor, Tensor, int]:
    task = tasks.digits(device="cpu")
    return task.build(0), *task.batches[0], 50


def large() -> tuple[nn.Module, Tensor, Tensor, int]:
    layers: list[nn.Module] = [nn.Linear(64, 2048), nn.ReLU()]
    for _ in range(6):  # 25 million weights
        layers += [nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, 10)), torch.randn(64, 64), torch.randint(0, 10, (64,)), 1


def updates(model: nn.Module, x: Tensor, y: Tensor, n: int) -> Callable[[], None]:
    """``n`` updates, as a function."""
    optimizer = torch.optim.AdamW(model.parameters())

    def run() -> None:
        for _ in range(n):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

    return run


def cost(make: Callable[[], tuple[nn.Module, Tensor, Tensor, int]]) -> dict[str, float]:
    """Milliseconds an update: alone and under a Ledger; medians, in turn."""
    model, x, y, n = make()
    run = updates(model, x, y, n)
    ways: dict[str, Callable[[], Any]] = {
        "alone": nullcontext,
        "Ledger": lambda: Ledger(model, (), (x, y)),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            with way():
                began = time.perf_counter()
                run()
                times[name].append((time.perf_counter() - began) / n * 1e3)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def largest_error() -> float:
    """The largest difference from the allocator's peak, as a share of it, over a few models and recipes."""
    worst = 0.0
    for name in MODELS:
        for amp, again in (("off", False), ("bf16", True)):
            case = Case(name, Recipe(accumulate=2, amp=amp, optimizer="adamw"), again)
            truth = events(lambda case=case: case.ready().run)
            loop = case.ready()
            gc.collect()
            with Ledger() as ledger:
                start = ledger.current
                loop.run()
            worst = max(worst, abs(ledger.peak - start - truth.peak) / truth.peak)
    return worst


def main() -> None:
    """Print the figures."""
    torch.set_num_threads(1)
    for name, make in (("digits MLP", digits), ("25M-parameter MLP", large)):
        ms = cost(make)
        print(f"{name:18} alone {ms['alone']:.2f} ms, Ledger {ms['Ledger']:.2f} ms ({ms['Ledger'] / ms['alone']:.2f}x)")
    print(f"largest difference from the allocator's peak: {100 * largest_error():.5f} %")


if __name__ == "__main__":
    main()
