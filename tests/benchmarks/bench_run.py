"""What recording costs: ``Run.advance`` on digits against plain ``exec`` of the same text, block by block in turn.

    python tests/benchmarks/bench_run.py

Exits with 1 if the default recipe costs more than the target; the others are printed for comparison.
"""

from __future__ import annotations

import statistics
import sys
import time
from types import CodeType
from typing import Any

import torch

from gradlab import Recipe, Run, tasks

TARGET = 1.25
BLOCKS = 40
EPOCHS = 3  # a block: 72 batches, about 20 ms
RECIPES: dict[str, dict[str, Any]] = {
    "default": {},
    "set_to_none=False": {"set_to_none": False},
    "zero_grad=False": {"zero_grad": False},
    "accumulate=4": {"accumulate": 4},
    "amp='fp16'": {"amp": "fp16"},
    "clip=1.0": {"clip": 1.0},
    "optimizer='adam'": {"optimizer": "adam", "lr": 0.001},
    "all of them": {"accumulate": 4, "amp": "fp16", "clip": 1.0, "optimizer": "adamw", "lr": 0.001, "zero_grad": False},
}


class Bare:
    """The text of a recipe, compiled by plain Python, with no instrument; the set-up runs once, a block is the loop."""

    def __init__(self, task: tasks.Task, recipe: Recipe) -> None:
        setup, loop = recipe.source().split("\n\n", 1)
        self.loop: CodeType = compile(loop, "<bare>", "exec")
        self.namespace: dict[str, Any] = {
            "torch": torch,
            "model": task.build(0),
            "loss_fn": task.loss_fn,
            "batches": task.batches,
            "device": task.device,
            "epochs": EPOCHS,
        }
        exec(setup, self.namespace)

    def block(self) -> float:
        began = time.perf_counter()
        exec(self.loop, self.namespace)
        return time.perf_counter() - began


def recorded(run: Run, updates: int) -> float:
    began = time.perf_counter()
    run.advance(updates=updates)
    return time.perf_counter() - began


def ratio(recipe: Recipe) -> tuple[float, float, float]:
    """Return the median ratio of neighbouring blocks, that of the best blocks, and the bare us an update."""
    task = tasks.digits(device="cpu")
    updates = EPOCHS * -(-len(task.batches) // recipe.accumulate)
    run, bare = Run(task, recipe), Bare(task, recipe)
    recorded(run, updates)
    bare.block()
    pairs = []
    for i in range(BLOCKS):  # in turn, and each first as often as the other
        if i % 2:
            plain, ours = bare.block(), recorded(run, updates)
        else:
            ours, plain = recorded(run, updates), bare.block()
        pairs.append((ours, plain))
    best = min(ours for ours, _ in pairs) / min(plain for _, plain in pairs)
    median = statistics.median(ours / plain for ours, plain in pairs)
    return median, best, 1e6 * min(plain for _, plain in pairs) / updates


def main() -> int:
    torch.set_num_threads(1)  # so that two processes do not fight for the cores
    print(f"Run.advance / bare exec on digits, {BLOCKS} pairs of blocks, 1 thread, torch {torch.__version__}")
    print(f"{'recipe':20} {'median':>7} {'best':>7} {'bare us/update':>15}")
    missed = False
    for name, changes in RECIPES.items():
        median, best, bare = ratio(Recipe(**{"lr": 0.05, **changes}))
        print(f"{name:20} {median:7.3f} {best:7.3f} {bare:15.0f}", flush=True)
        if name == "default":
            missed = median > TARGET
    print(f"target for the default recipe: at most {TARGET}: {'MISSED' if missed else 'met'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
