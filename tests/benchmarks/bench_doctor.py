"""What watch costs: time on a small MLP and on a model of 25 million parameters, and its memory over many updates.

Watched and bare updates take turns in short rounds, so that whatever else the machine does falls on both alike; the
ratio is that of the medians. Targets: at most 1.3 times the bare step on the MLP, 1.05 on the large model.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable

import torch
from torch import nn

from gradlab.doctor import watch

ROUNDS = 40


def mlp(width: int, depth: int, rows: int) -> Callable[[], None]:
    """Return a function that does one update."""
    torch.manual_seed(0)
    layers = [one for _ in range(depth) for one in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = torch.randn(rows, width), torch.randint(10, (rows,))

    def update() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    update.__doc__ = f"{sum(p.numel() for p in model.parameters()):,} parameters"
    return update


def seconds(update: Callable[[], None], count: int) -> float:
    """Return the processor's seconds of one update."""
    began = time.process_time()
    for _ in range(count):
        update()
    return (time.process_time() - began) / count


def cost(name: str, update: Callable[[], None], count: int, warm: int, target: float, rounds: int = ROUNDS) -> None:
    """Print what an update costs, bare and watched."""
    bare, watched = [], []
    seconds(update, warm)
    for _ in range(rounds):
        bare.append(seconds(update, count))
        with watch():
            seconds(update, warm)
            watched.append(seconds(update, count))
    one, two = statistics.median(bare), statistics.median(watched)
    print(
        f"{name} ({update.__doc__}): {one * 1e3:.3f} ms bare, {two * 1e3:.3f} ms watched: "
        f"{two / one:.3f} times (target {target}); added {1e6 * (two - one):.0f} us"
    )


def memory(update: Callable[[], None], updates: int) -> None:
    """Print what the doctor holds, and how many events wait, after more and more updates."""
    report = watch()
    tracemalloc.start()
    with report:
        for part in range(1, 5):
            seconds(update, updates // 4)
            gc.collect()
            used, peak = tracemalloc.get_traced_memory()
            waiting = len(report._runner.listener.log.events) if report._runner else 0
            size = f"{used / 1024:.0f} KiB, peak {peak / 1024:.0f}"
            print(f"  {part * updates // 4:,} updates: {size}; {waiting} events wait")
    tracemalloc.stop()


if __name__ == "__main__":
    torch.set_num_threads(1)
    cost("small MLP", mlp(64, 2, 64), count=50, warm=60, target=1.3)
    cost("smaller still", mlp(8, 1, 8), count=50, warm=60, target=1.3)
    cost("large MLP", mlp(1536, 10, 64), count=2, warm=1, target=1.05, rounds=8)
    print("memory of the small MLP, watched:")
    memory(mlp(8, 1, 8), 20_000)
