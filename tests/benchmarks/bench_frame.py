"""The cost of a frame to the kernel: scene, Drawing and message, for the four panels of digits and of bowl.

    python tests/benchmarks/bench_frame.py
    python tests/benchmarks/bench_frame.py --million

A run of 1,000 updates and one of 100,000 are measured frame by frame in turn, in CPU time. "As played" is at 60 frames
a second, where costly panels skip frames. ``--million`` plays a million updates at full speed, with a browser's
requests, and shows the growth of memory. Exits with 1 if a figure misses its target.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gradlab import Lab
from gradlab.drawing import Encoder
from gradlab.scenes import PanelName
from gradlab.widgets.frames import PanelDrawings

UPDATES = (1_000, 100_000)
FRAMES = 240
FRAME_MS = 1000 / 60
PANELS = {"digits": ["loss", "gradient", "picture", "memory"], "bowl": ["loss", "gradient", "landscape", "memory"]}
FRAME_TARGET_MS = 2.0  # as played, with the gradient in every second frame
RATIO_TARGET = 1.2  # of a frame at 100,000 updates to one at 1,000
MILLION, GROWTH_TARGET_MB = 1_000_000, 30.0


class Frames:
    """Draws the panels of a lab repeatedly: all of them, or those that are due."""

    def __init__(self, lab: Lab, *, as_played: bool) -> None:
        self.run, self.as_played = lab.runner, as_played
        self.names = lab.model.panels()
        self.screen = PanelDrawings(lab.model.screen.scenes)
        self.encoders = {name: Encoder() for name in self.names}
        self.now = 0.0
        self.spent: list[float] = []  # ms
        self.sent: list[int] = []  # bytes

    def make(self) -> None:
        """Make one update and its frame; the first frame, which is complete, does not count."""
        self.now += FRAME_MS
        self.run.watch_memory = not self.as_played or self.screen.due(PanelName.MEMORY, self.now)
        self.run.advance(updates=1)
        start = time.process_time()
        drawings = self.screen.draw(self.names, self.now, only_due=self.as_played)
        changes = [self.encoders[name].change(drawing) for name, drawing in drawings.items()]
        if self.now > FRAME_MS:
            self.spent.append((time.process_time() - start) * 1000)
            self.sent.append(len(json.dumps([change for change in changes if change], separators=(",", ":"))))


def compared(task: str) -> Iterator[tuple[str, str, str, bool]]:
    """Measure a short and a long run in turn; yield name, figure, target and whether the target is met."""
    labs = [Lab(task, panels=PANELS[task]) for _ in UPDATES]
    for lab, updates in zip(labs, UPDATES, strict=True):
        start = time.process_time()
        lab.runner.advance(updates=updates - 1)
        rate = updates / (time.process_time() - start)
    yield f"{task}, Run.advance alone", f"{rate:,.0f} updates/s", "", True  # the machine's current speed
    for as_played in (True, False):
        short, long = both = [Frames(lab, as_played=as_played) for lab in labs]
        for _ in range(FRAMES + 1):
            for frames in both:
                frames.make()
        for updates, frames in zip(UPDATES, both, strict=True):
            mode = "as played" if as_played else "all four anew"
            mean, middle = statistics.mean(frames.spent), statistics.median(frames.spent)
            figure = f"{mean:.2f} ms (median {middle:.2f}), {statistics.mean(frames.sent):.0f} bytes"
            target = (f"<= {FRAME_TARGET_MS:g} ms", mean <= FRAME_TARGET_MS) if as_played else ("", True)
            yield f"{task}, update {updates:,}, {mode}", figure, *target
        ratio = statistics.median(long.spent) / statistics.median(short.spent)
        name, met = f"{task}, the long run against the short one", ratio <= RATIO_TARGET
        yield name, f"{ratio:.2f} x", f"<= {RATIO_TARGET:g} x", met


def million(task: str = "digits") -> Iterator[tuple[str, str, str, bool]]:
    """Play a million updates at full speed; yield name, figure, target and whether the target is met."""
    process = psutil.Process()
    lab = Lab(task, panels=PANELS[task])
    lab.handle({"do": "hello", "n": 0, "client": "bench"})
    request = {"do": "frames", "count": 1, "every": 25.0, "seconds": 0.025, "client": "bench"}
    marks = [10_000, *range(MILLION // 5, MILLION + 1, MILLION // 5)]
    resident: list[float] = []
    start, number, sent, updates = time.perf_counter(), 0, 0, 0
    while marks:
        number += 1
        answer = lab.handle({**request, "n": number})
        sent += len(json.dumps(answer, separators=(",", ":")))
        updates = lab.runner.updates
        if updates >= marks[0]:
            marks.pop(0)
            resident.append(process.memory_info().rss / 1e6)
            rate = updates / (time.perf_counter() - start)
            print(f"update {updates:,}: {resident[-1]:.1f} MB, {rate:,.0f} updates/s")
    seconds = time.perf_counter() - start
    figure = f"{updates / seconds:,.0f} updates/s, {number / seconds:.0f} frames/s, {sent / number:.0f} bytes a frame"
    yield f"{task}, {updates:,} updates played", figure, "", True
    grown = resident[-1] - resident[0]
    figure = f"{resident[0]:.1f} MB at update 10,000, {resident[-1]:.1f} at the end"
    yield "memory of the process", figure, f"+{GROWTH_TARGET_MB:g} MB", grown <= GROWTH_TARGET_MB


def main() -> int:
    """Print the figures; return 1 if one misses its target."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--million", action="store_true", help="play a million updates instead; about ten minutes")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    rows = million() if options.million else (row for task in PANELS for row in compared(task))
    missed = 0
    for name, figure, target, met in rows:
        missed += not met
        print(f"{name:44}{figure:>42}  {target:10} {'' if met else 'MISSED'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
