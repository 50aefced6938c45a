"""Latency of each instrument, in ms, and size of its page without a kernel.

    python tests/benchmarks/bench_instruments.py

Every control takes its values in turn, without a browser; measured is the time from a change to the frame that answers
it, first for new settings and then for the same again.
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
MAX_VALUES = 8  # values of one control


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print("instrument       first show  new: median  95 %  seen: median   page kB")
    for name in NAMES:
        start = time.perf_counter()
        instrument = getattr(course, name)()
        instrument.handle({"do": "hello"})
        first_show = (time.perf_counter() - start) * 1000
        times: list[list[float]] = [[], []]
        for again in range(2):
            for control in instrument.controls():
                values = control.values[:: max(1, len(control.values) // MAX_VALUES)]
                for value in [*values, control.start]:
                    start = time.perf_counter()
                    instrument.handle({"do": "turn", "name": control.name, "value": value})
                    times[again].append((time.perf_counter() - start) * 1000)
        with tempfile.TemporaryDirectory() as folder:
            size = instrument.save(Path(folder) / "page.html").stat().st_size / 1000
        new, repeated = times
        slow = sorted(new)[int(0.95 * len(new))]
        row = f"{name:15} {first_show:8.0f} ms {statistics.median(new):9.1f} ms {slow:5.0f}"
        print(f"{row} {statistics.median(repeated):10.1f} ms {size:9.0f}")


if __name__ == "__main__":
    main()
