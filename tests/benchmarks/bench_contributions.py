"""The cost of recording contributions to ``.grad``: CPU time of updates with it over updates without.

python tests/benchmarks/bench_contributions.py
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch

from gradlab import Recipe, Run, tasks

RECIPES: tuple[dict[str, Any], ...] = (
    {},
    {"accumulate": 4},
    {"zero_grad": False},
    {"clip": 1.0, "amp": "fp16"},
)
ROUNDS = 9


def cost(task: str, recipe: Recipe) -> tuple[float, float]:
    """Return the microseconds of a bare update, and the median ratio of watched to bare, measured in turns."""
    runs = [Run(getattr(tasks, task)(), recipe) for _ in range(2)]
    runs[1].watch_gradients = True
    count = 15 if task == "text" else 150
    times: list[list[float]] = [[], []]
    for run in runs:
        run.advance(updates=20)
    for _ in range(ROUNDS):
        for run, seconds in zip(runs, times, strict=True):
            start = time.process_time()
            run.advance(updates=count)
            seconds.append((time.process_time() - start) / count)
    ratios = [watched / bare for bare, watched in zip(*times, strict=True)]
    return statistics.median(times[0]) * 1e6, statistics.median(ratios)


def main() -> None:
    """Print a line for each task and recipe."""
    torch.set_num_threads(1)
    for task in ("bowl", "line", "digits", "text"):
        for switches in RECIPES:
            bare, ratio = cost(task, Recipe(lr=0.01, **switches))
            print(f"{task:7} {switches!s:32} {bare:8.0f} us  x {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
