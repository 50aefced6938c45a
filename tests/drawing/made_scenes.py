"""Scenes made up by hand and at random, which the tests of all panels share."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np

from gradlab.scenes import (
    Arrows,
    BatchArrow,
    Contours,
    Curve,
    Fit,
    Landscape,
    Memory,
    Samples,
    ScalerHistory,
)

NAN, INF = math.nan, math.inf
X, Y = np.linspace(-3, 3, 21), np.linspace(-2, 2, 15)
BOWL = Contours(X.tolist(), Y.tolist(), (X[None] ** 2 + 4 * Y[:, None] ** 2).tolist(), ("slope", "bias"))
DIGITS = np.random.default_rng(0).random((6, 8, 8)).tolist()


def curve(count: int, **more: Any) -> Curve:
    """A falling loss over ``count`` updates."""
    updates = np.arange(1, count + 1)
    mean = 0.3 + np.exp(-updates / 40) + 0.1 * np.sin(updates)
    more.setdefault("now", float(mean[-1]) if count else NAN)
    return Curve(updates.tolist(), mean.tolist(), (mean * 0.9).tolist(), (mean * 1.1).tolist(), **more)


def arrows(reused: bool, scale: float = 1.0) -> Arrows:
    """Three arrows on contours, the second of them reused or not."""
    three = [
        BatchArrow((1, 2), -scale, 0.0, 0.16, (2, 3)),
        BatchArrow((3, 3), -scale, 2 * scale, 0.4, (2, 2) if reused else (1, 1)),
        BatchArrow((4, 4), -2 * scale, scale, 0.44),
    ]
    return Arrows(three, (-4 * scale, 3 * scale), [(1, 4)], BOWL, path=[(-1.0, 0.5)])


def plane(scale: float = 1.0) -> Arrows:
    """The same in the plane of the sum and the newest one; one points backwards."""
    three = [
        BatchArrow((1, 40), 5 * scale, -scale, 1.25, (2, 41)),
        BatchArrow((41, 41), -3 * scale, -2 * scale, -0.75, (1, 1)),
        BatchArrow((42, 42), 2 * scale, 3 * scale, 0.5),
    ]
    return Arrows(three, (4 * scale, 0.0), [(1, 42)])


def memory(peak: int = 90_000) -> Memory:
    """One update of four statements."""
    sizes = {"weights": [40_000] * 4, "gradients": [0, 0, 40_000, 40_000], "activations": [0, peak, 100, 0]}
    statements = ["zero_grad", "forward", "backward", "step"]
    return Memory(statements, range(4), {**sizes, "odd": [9] * 4}, [(0, 41)], allocated=150_000, reserved=200_000)


USUAL: list[Any] = [
    curve(60, switches=((20, "zero_grad off"), (22, "lr 0.3"))),
    arrows(True),
    plane(),
    Landscape(BOWL, [(-2, 1), (-1, 0.4), (0.3, -0.2)]),
    ScalerHistory([1, 2, 3], [65536, 32768, 32768], [1], [0, 0, 1]),
    Samples(DIGITS, [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 7], 0.8),
    memory(),
    Fit([("before", {"weights": 9}), ("now", {"odd": 12})], [("T4", 20)]),
]
HUGE = BatchArrow((1, 1), 1e308, 1e308, 1e9)
DEGENERATE: list[Any] = [
    Curve([], [], [], []),
    Curve([1], [0.5], [0.5], [0.5]),
    Curve([1, 2], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    Curve([1, 2, 3], [1, INF, NAN], [1, INF, NAN], [1, NAN, INF], broken=2),
    Curve([1, 2, 3], [1e-30, 1e30, 1e308], [0, 1, 1], [1, 1e30, 1e308], now=INF),
    Curve([1, 2], [-5, 1e-320], [-5, 0], [-5, 0], switches=tuple((1, "a very long name" * 4) for _ in range(50))),
    Curve([], [], [], [], broken=1, now=NAN),
    Arrows([], (0, 0), [], BOWL),
    Arrows([], (0, 0)),
    Arrows([], (3, 0), [(1, 4)], measured=False),
    Arrows([BatchArrow((1, 1), NAN, INF, NAN, (2, 2))], (INF, 0), [(1, 1)], BOWL, path=[(NAN, INF)]),
    Arrows([BatchArrow((1, 1), NAN, INF, NAN, (2, 2))], (NAN, 0), [(1, 1)]),
    Arrows([HUGE, BatchArrow((2, 2), 1e308, -1e308, -1e9, (2, 2))], (1e308, 1), [(1, 2)], BOWL, path=[(1e30, 0)]),
    Arrows([HUGE, BatchArrow(None, 1e308, -1e308, INF, (2, 2))], (1e308, 0), [(1, 1)]),
    Arrows([BatchArrow((1, 1), 1e-310, 0, 1)], (1e-310, 0), [(1, 1)]),
    Arrows([BatchArrow((1, 1), 0, 0, 1)], (0, 0), [(1, 1)], Contours([0, 1], [0, 1], [[2, 2], [2, 2]])),
    Arrows(
        [BatchArrow((1, 1), 1, 1, 1 / 300)] * 300, (300, 300), [(n, n) for n in range(1, 99, 2)], Contours([], [], [])
    ),
    Arrows([BatchArrow((1, 1), 1, 1, 1 / 300)] * 300, (300, 300), [(1, 300)]),
    Landscape(Contours([1], [1], [[1]]), []),
    Landscape(Contours([0, 1], [0, 1], [[NAN, INF], [1e30, 1]]), [(0, 0), (NAN, NAN)]),
    Landscape(Contours([0, 1, 2], [0, 1, 2], [[1, 2, 3], [1e308, 2, 3], [0, 0, NAN]]), [(1e300, -1e300)]),
    ScalerHistory([], [], [], []),
    ScalerHistory([1, 2, 3], [0, INF, 2.0**-20], [1, 2, 9], [NAN, 2, -1]),
    ScalerHistory([1], [2.0**120], [1], [0]),
    Samples([], [], [], NAN),
    Samples(DIGITS * 9, list(range(54)), list(range(54)), 1.0),
    Samples([[[NAN] * 8] * 8], [1], [2], 0.0),
    Memory([]),
    Memory(["step"]),
    Memory(["step"], [0], {}, [(0, 1)]),
    Memory(["a", "b"], [0, 1], {"weights": [0, 0], "gradients": []}),
    Memory(["a"] * 70, range(70), {"weights": [10**15] * 70, "optimizer": [10**30] * 70}, allocated=10**18, reserved=0),
    Memory(["a", "b"], [5, -3], {"weights": [1, NAN, INF]}, [(-1, 1), (1, 2), (9, 3)], ["m"], ("T4", 0)),
    Fit([], []),
    Fit([("a" * 80, {})] * 9, [("T4", 0), ("b" * 80, 10**30)]),
    Fit([("a", {"weights": 10**300, "odd": 1}), ("", {"other": -5})], [("T4", 1)] * 30, "a title" * 40),
]


def random_scene(seed: int) -> Any:
    """A scene with many labels and numbers such as runs give, some of them odd."""
    chance = random.Random(seed)
    kinds = [_curve, random_arrows, _memory, _fit]
    return kinds[seed % len(kinds)](chance)


def _curve(chance: random.Random) -> Curve:
    count, scale = chance.randint(0, 1024), 10 ** chance.uniform(-6, 6)
    mean = [scale * (0.2 + chance.random() + math.exp(-i / 99)) for i in range(count)]
    stride = 2 ** chance.randint(0, 12)
    names = ["zero_grad off", "lr 0.3", "accumulate 4, optimizer adam", "a very long name of a switch that was turned"]
    turned = sorted((chance.randint(0, count * stride), chance.choice(names)) for _ in range(chance.randint(0, 9)))
    broken = count * stride if chance.random() < 0.2 else None
    x = [i * stride + 1 for i in range(count)]
    now = mean[-1] * chance.random() if mean else NAN
    return Curve(x, mean, [0.5 * y for y in mean], [1.4 * y for y in mean], tuple(turned), broken, now)


def _points(chance: random.Random, count: int, wide: float) -> list[tuple[float, float]]:
    return [(chance.gauss(0, wide), chance.gauss(0, wide)) for _ in range(count)]


def random_arrows(chance: random.Random) -> Arrows:
    scale = 10 ** chance.uniform(-6, 4)
    steps = _points(chance, chance.randint(0, 12), scale)
    first = chance.randint(2, 10**5)
    some = [
        BatchArrow((first + i, first + i), x, y, chance.gauss(0, 1), (chance.randrange(3),) * 2)
        for i, (x, y) in enumerate(steps)
    ]
    if chance.random() < 0.5:
        (x, y), span = _points(chance, 1, scale)[0], (1, first - 1) if chance.random() < 0.8 else None
        some.insert(0, BatchArrow(span, x, y, chance.gauss(0, 1), (chance.randrange(3),) * 2))
    total = sum(a.x for a in some), sum(a.y for a in some)
    holds = [(first, first + len(steps) - 1)] if steps else []
    if chance.random() < 0.5:
        return Arrows(some, total, holds)
    return Arrows(some, total, holds, BOWL, path=_points(chance, 1, chance.choice([1.0, 9.0])))


def _memory(chance: random.Random) -> Memory:
    window, updates, blocks = chance.choice([1, 2, 4, 16]), chance.randint(1, 3), chance.randint(1, 40)
    statements = ["zero_grad", *["for", "x, y", "output", "loss", "backward"] * window, "step"]
    counts = [chance.randint(0, blocks) for _ in statements] * updates
    starts = [0, *itertools.accumulate(counts)]
    size = 10 ** chance.uniform(1, 12)
    names = ["weights", "gradients", "optimizer", "activations", "inputs", "other"]
    sizes = {name: [int(size * chance.random()) for _ in range(starts[-1])] for name in names if chance.random() < 0.8}
    first = chance.randint(1, 10**6)
    modules = [chance.choice(["", "layers.11.self_attention.heads.output_projection", "0"]) for _ in range(starts[-1])]
    card = (chance.choice(["T4", "RTX PRO 6000 Blackwell"]), int(size * 10 ** chance.uniform(-1, 3)))
    more: dict[str, Any] = {"capacity": card} if chance.random() < 0.5 else {}
    if chance.random() < 0.5:
        more |= {
            "allocated": int(4 * size),
            "reserved": int(5 * size * chance.random()),
            "note": "1 update in 12 is watched",
        }
    numbers = [(i * len(statements), first + i) for i in range(updates)]
    return Memory(statements * updates, starts[:-1], sizes, numbers, modules, **more)


def _fit(chance: random.Random) -> Fit:
    size = 10 ** chance.uniform(3, 13)
    names = ["weights", "gradients", "optimizer", "activations", "inputs", "other"]
    bars = [
        (chance.choice(["now", "batch 2048", "checkpointing"]), {name: int(size * chance.random()) for name in names})
        for _ in range(chance.randint(0, 5))
    ]
    cards = [("T4", 15 * 2**30), ("L4", 22 * 2**30), ("H100", 79 * 2**30), ("RTX PRO 6000 Blackwell", 95 * 2**30)]
    return Fit(bars, cards[: chance.randint(0, 4)], chance.choice(["", "llama-8b", "gpt2-1.5b, batch 8"]))
