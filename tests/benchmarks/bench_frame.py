"""What one frame costs: three panels against livelossplot, and a long run against a short one."""

from __future__ import annotations

import contextlib
import io
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from gradlab.drawing import Encoder
from gradlab.drawing import draw as draw_panel
from gradlab.scenes.kinds import Bar, Bars, Curve, Memory

FRAMES = 60
SIZE = (400, 340)
STATEMENTS = ["zero_grad", "forward", "loss", "backward", "forward", "loss", "backward", "step"]


def curve(update: int, buckets: int) -> Curve:
    """Return a noisy, falling loss over so many updates in so many buckets."""
    at = np.linspace(1, update, buckets)
    bucket = np.arange(buckets)  # noise by bucket, so that the pictures of a long and of a short run are as rough
    noise = 0.05 * np.sin(bucket / 3) + 0.02 * np.sin(bucket * 12.9898 + update)
    mean = 0.3 + 2 * np.exp(-at / (0.3 * update)) + noise
    return Curve(
        at.tolist(), mean.tolist(), (mean * 0.9).tolist(), (mean * 1.1).tolist(), ((update // 2, "zero_grad off"),)
    )


def scenes(update: int) -> list[Any]:
    """Return what the three panels show at an update; everything moves from one update to the next."""
    wave = 1 + 0.3 * np.sin(update / 5)
    bars = [
        Bar(f"{layer}.{kind}", float(wave * (9 - layer)), 1, update % 9)
        for layer in (0, 2, 4)
        for kind in ("weight", "bias")
    ]
    held = [int(40_000 * wave)] * len(STATEMENTS)
    memory = {
        "weights": [40_000] * len(STATEMENTS),
        "gradients": [0, 0, 0, *held[3:]],
        "optimizer": [80_000] * len(STATEMENTS),
        "activations": [0, 90_000, int(92_000 * wave), 900, 90_000, 92_000, 900, 0],
    }
    return [
        curve(update, 400),
        Bars(bars, [(update - update % 9, update)]),
        Memory(STATEMENTS, range(len(STATEMENTS)), memory, [(0, update)]),
    ]


def per_frame(draw: Callable[[int], Any], frames: int) -> float:
    """Return the median seconds of ``draw(i)``, after a first call that does not count."""
    draw(0)
    spent = []
    for frame in range(1, frames + 1):
        before = time.perf_counter()
        draw(frame)
        spent.append(time.perf_counter() - before)
    return statistics.median(spent)


def ours() -> tuple[float, int]:
    """Return seconds and bytes of a frame of loss, bars and memory."""
    ready = [scenes(1000 + frame) for frame in range(FRAMES + 1)]
    encoders = [Encoder() for _ in ready[0]]
    sizes: list[int] = []

    def draw(frame: int) -> None:
        total = 0
        for encoder, scene in zip(encoders, ready[frame], strict=True):
            total += len(json.dumps(encoder.change(draw_panel(scene, *SIZE))))
        sizes.append(total)

    return per_frame(draw, FRAMES), max(sizes)


def long_run(update: int) -> float:
    """Return seconds of a frame of the loss panel at an update, 1024 buckets wide."""
    ready = [curve(update + frame, 1024) for frame in range(FRAMES + 1)]
    encoder = Encoder()

    def draw(frame: int) -> None:
        encoder.change(draw_panel(ready[frame], *SIZE))

    return per_frame(draw, FRAMES)


def livelossplot(updates: int = 400) -> float:
    """Return seconds of one ``send()`` of two plots with as many points as ours; the picture is rendered, not shown."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from livelossplot import PlotLosses
    from livelossplot.outputs import MatplotlibPlot

    def rendered(figure: Any) -> None:
        figure.tight_layout()  # as livelossplot does before it shows the figure
        figure.savefig(io.BytesIO(), format="png", bbox_inches="tight")  # as the notebook's inline backend does
        plt.close(figure)

    plots = PlotLosses(outputs=[MatplotlibPlot(after_plots=rendered)], mode="script")
    losses = curve(1000, updates)
    for mean, high in zip(losses.mean, losses.high, strict=True):
        plots.update({"loss": mean, "val_loss": high, "grad": high - mean})

    def send(_: int) -> None:
        with contextlib.redirect_stdout(io.StringIO()):  # it clears the cell, here a terminal
            plots.send()

    return per_frame(send, 8)


def main() -> int:
    """Print the figures; return 1 when one misses its target."""
    warnings.simplefilter("ignore")
    frame, size = ours()
    early, late = long_run(1_000), long_run(100_000)
    theirs = livelossplot()
    rows = [
        ("three panels, one frame", f"{frame * 1e3:.1f} ms", "(aim 1 ms)", True),
        ("three panels, bytes on the wire", f"{size / 1000:.1f} kB", "<= 60 kB", size <= 60_000),
        ("livelossplot, one send()", f"{theirs * 1e3:.1f} ms", "", True),
        ("cheaper than livelossplot", f"{theirs / frame:.1f} x", ">= 8 x", theirs >= 8 * frame),
        ("loss panel at update 1,000", f"{early * 1e3:.1f} ms", "", True),
        (
            "loss panel at update 100,000",
            f"{late * 1e3:.1f} ms ({late / early:.2f} x)",
            "<= 1.2 x",
            late <= 1.2 * early,
        ),
    ]
    for name, figure, target, met in rows:
        print(f"{name:32}{figure:>22}  {target:10} {'' if met else 'MISSED'}")
    return 0 if all(met for *_, met in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
