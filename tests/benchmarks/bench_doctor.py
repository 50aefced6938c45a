"""The cost of watch: CPU time on models from tiny to 25 million parameters.

Bare and watched blocks of updates of two equal models alternate, so that other load affects both alike; the result is
the median ratio of neighbours. ``--against PATH`` also measures another checkout of gradlab, in turn with this one.
Targets: at most 1.15 on the small MLP, 1.03 on the large one.

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_doctor.py [--against PATH] [MODEL ...]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from gradlab.doctor import watch

HERE = Path(__file__).resolve().parents[2]
Update = Callable[[], None]


def training(model: nn.Module, x: Tensor, y: Tensor, **adam: bool) -> Update:
    """Return a function that makes one update."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **adam)

    def update() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    update.__doc__ = f"{sum(p.numel() for p in model.parameters()):,} parameters"
    return update


def tiny() -> Update:
    return training(nn.Linear(2, 2), torch.randn(4, 2), torch.randint(2, (4,)))


def small() -> Update:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    return training(model, torch.randn(64, 64), torch.randint(10, (64,)))


def cnn() -> Update:
    layers: list[nn.Module] = []
    for before, after in ((1, 8), (8, 16), (16, 32)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 9, 10))
    return training(model, torch.randn(16, 1, 28, 28), torch.randint(10, (16,)))


def transformer() -> Update:
    layer = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), nn.Flatten(), nn.Linear(256, 10))
    return training(model, torch.randn(8, 8, 32), torch.randint(10, (8,)))


def large() -> Update:
    layers = [layer for _ in range(10) for layer in (nn.Linear(1536, 1536), nn.ReLU())]
    return training(nn.Sequential(*layers, nn.Linear(1536, 10)), torch.randn(64, 1536), torch.randint(10, (64,)))


MODELS: dict[str, tuple[Callable[[], Update], int, int, int]] = {  # updates in a block, before each, rounds
    "tiny": (tiny, 400, 100, 30),
    "small": (small, 400, 100, 30),
    "cnn": (cnn, 60, 100, 15),
    "transformer": (transformer, 40, 100, 15),
    "large": (large, 3, 80, 3),
}


def seconds(update: Update, count: int) -> float:
    """Return the CPU time of ``count`` updates."""
    start = time.process_time()
    for _ in range(count):
        update()
    return time.process_time() - start


def rounds(name: str, count: int) -> list[tuple[float, float]]:
    """Return the seconds of an update, bare and watched, of each round; each watch is warmed up."""
    torch.manual_seed(0)
    make, block, warm, _ = MODELS[name]
    bare, watched = make(), make()
    measured = []
    for _ in range(count):
        seconds(bare, 2)
        bare_s = seconds(bare, block)
        with watch() as report:
            _, watched_s = [seconds(watched, updates) for updates in (warm, block)]  # the same line calls both
        assert not report.findings, report
        measured.append((bare_s / block, watched_s / block))
    return measured


def elsewhere(checkout: Path, name: str, count: int) -> list[tuple[float, float]]:
    """Return the rounds of a checkout of gradlab, measured in a new process."""
    command = [sys.executable, __file__, name, "--raw", str(count)]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return [(bare, watched) for bare, watched in json.loads(output)]


def summary(measured: list[tuple[float, float]]) -> str:
    ratio = statistics.median(watched / bare for bare, watched in measured)
    added = statistics.median(watched - bare for bare, watched in measured)
    return f"{ratio:.3f} times ({1e6 * added:+.0f} us)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=[*MODELS])
    parser.add_argument("--against", type=Path, help="another checkout of gradlab")
    parser.add_argument("--raw", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.raw:
        print(json.dumps(rounds(options.models[0], options.raw)))
        return
    for name in options.models:
        make, _, _, count = MODELS[name]
        checkouts = {"here": HERE} | ({"against": options.against.resolve()} if options.against else {})
        measured: dict[str, list[tuple[float, float]]] = {label: [] for label in checkouts}
        for _ in range(3):
            for label, checkout in checkouts.items():
                measured[label] += elsewhere(checkout, name, -(-count // 3))
        bare = statistics.median(seconds for pairs in measured.values() for seconds, _ in pairs)
        costs = "; ".join(f"{label}: {summary(rows)}" for label, rows in measured.items())
        print(f"{name} ({make().__doc__}), {1e3 * bare:.3f} ms bare: {costs}", flush=True)


if __name__ == "__main__":
    main()
