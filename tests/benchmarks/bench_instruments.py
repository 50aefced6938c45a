"""How soon each instrument answers a hand, in ms, and how large its page without a kernel is.

    python tests/benchmarks/bench_instruments.py

Every control goes through its values once, from the start, in a process without a browser: what is told is the time
from a turn to the frame that answers it, first for settings that were never seen and then for the same again.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import gradlab.course as course

NAMES = ("swing", "ring_of_orders", "peak", "loss_scale", "two_ranks")
MOST = 8  # values of one control


def main() -> None:
    """Print a table."""
    torch.set_num_threads(1)
    print("instrument       first show  new: median  95 %  seen: median   page kB")
    for name in NAMES:
        began = time.perf_counter()
        instrument = getattr(course, name)()
        instrument.handle({"do": "hello"})
        shown = (time.perf_counter() - began) * 1000
        times: list[list[float]] = [[], []]
        for again in range(2):
            for control in instrument.controls():
                options = control.values[:: max(1, len(control.values) // MOST)] if control.kind != "order" else []
                for value in [*options, control.start]:
                    began = time.perf_counter()
                    instrument.handle({"do": "turn", "name": control.name, "value": value})
                    times[again].append((time.perf_counter() - began) * 1000)
        with tempfile.TemporaryDirectory() as folder:
            size = instrument.save(Path(folder) / "page.html").stat().st_size / 1000
        new, seen = times
        slow = sorted(new)[int(0.95 * len(new))]
        print(
            f"{name:15} {shown:8.0f} ms {statistics.median(new):9.1f} ms {slow:5.0f} {statistics.median(seen):10.1f} ms"
            f" {size:9.0f}"
        )


if __name__ == "__main__":
    main()
