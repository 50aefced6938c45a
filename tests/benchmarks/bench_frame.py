"""What a frame costs the kernel: scene, Drawing and what is sent of it, for the four panels of digits and of bowl.

    python tests/benchmarks/bench_frame.py
    python tests/benchmarks/bench_frame.py --million

A run of 1,000 updates and one of 100,000 are measured frame by frame in turn, in time of the processor. "As played" is
at 60 frames a second, where costly panels rest for some frames. ``--million`` plays a million updates at full speed, as
the browser asks for them, and tells how memory grows. Exits with 1 if a figure misses its target.
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
EVERY = 1000 / 60  # ms
PANELS = {"digits": ["loss", "gradient", "picture", "memory"], "bowl": ["loss", "gradient", "landscape", "memory"]}
MOST = 2.0  # ms of a frame as played, with the gradient in every second one
LONGER = 1.2  # times as much at 100,000 updates as at 1,000
MILLION, GROWTH = 1_000_000, 30.0  # MB that a process may grow by


class Frames:
    """Makes the panels of a lab again and again: all of them, or those that are due."""

    def __init__(self, lab: Lab, *, as_played: bool) -> None:
        self.run, self.as_played = lab.runner, as_played
        self.names = lab.model.panels()
        self.screen = PanelDrawings(lab.model.screen.scenes)
        self.encoders = {name: Encoder() for name in self.names}
        self.now = 0.0
        self.spent: list[float] = []  # ms
        self.sent: list[int] = []  # bytes

    def make(self) -> None:
        """Make one update and its frame; the first one, which tells everything, does not count."""
        self.now += EVERY
        self.run.watch_memory = not self.as_played or self.screen.due(PanelName.MEMORY, self.now)
        self.run.advance(updates=1)
        began = time.process_time()
        drawings = self.screen.draw(self.names, self.now, only_due=self.as_played)
        changes = [self.encoders[name].change(drawing) for name, drawing in drawings.items()]
        if self.now > EVERY:
            self.spent.append((time.process_time() - began) * 1000)
            self.sent.append(len(json.dumps([change for change in changes if change], separators=(",", ":"))))


def compared(task: str) -> Iterator[tuple[str, str, str, bool]]:
    """Measure a short and a long run in turn; yield name, figure, target and whether it is met."""
    labs = [Lab(task, panels=PANELS[task]) for _ in UPDATES]
    for lab, updates in zip(labs, UPDATES, strict=True):
        began = time.process_time()
        lab.runner.advance(updates=updates - 1)
        rate = updates / (time.process_time() - began)
    yield f"{task}, Run.advance alone", f"{rate:,.0f} updates/s", "", True  # how fast this machine is just now
    for as_played in (True, False):
        short, long = both = [Frames(lab, as_played=as_played) for lab in labs]
        for _ in range(FRAMES + 1):
            for frames in both:
                frames.make()
        for updates, frames in zip(UPDATES, both, strict=True):
            how = "as played" if as_played else "all four anew"
            mean, middle = statistics.mean(frames.spent), statistics.median(frames.spent)
            figure = f"{mean:.2f} ms (median {middle:.2f}), {statistics.mean(frames.sent):.0f} bytes"
            yield (
                f"{task}, update {updates:,}, {how}",
                figure,
                *((f"<= {MOST:g} ms", mean <= MOST) if as_played else ("", True)),
            )
        ratio = statistics.median(long.spent) / statistics.median(short.spent)
        yield f"{task}, the long run against the short one", f"{ratio:.2f} x", f"<= {LONGER:g} x", ratio <= LONGER


def million(task: str = "digits") -> Iterator[tuple[str, str, str, bool]]:
    """Play a million updates at full speed; yield name, figure, target and whether it is met."""
    process = psutil.Process()
    lab = Lab(task, panels=PANELS[task])
    lab.handle({"do": "hello", "n": 0, "client": "bench"})
    request = {"do": "frames", "count": 1, "every": 25.0, "seconds": 0.025, "client": "bench"}
    marks = [10_000, *range(MILLION // 5, MILLION + 1, MILLION // 5)]
    held: list[float] = []
    began, number, sent, updates = time.perf_counter(), 0, 0, 0
    while marks:
        number += 1
        answer = lab.handle({**request, "n": number})
        sent += len(json.dumps(answer, separators=(",", ":")))
        updates = lab.runner.updates
        if updates >= marks[0]:
            marks.pop(0)
            held.append(process.memory_info().rss / 1e6)
            print(f"update {updates:,}: {held[-1]:.1f} MB, {updates / (time.perf_counter() - began):,.0f} updates/s")
    seconds = time.perf_counter() - began
    figure = f"{updates / seconds:,.0f} updates/s, {number / seconds:.0f} frames/s, {sent / number:.0f} bytes a frame"
    yield f"{task}, {updates:,} updates played", figure, "", True
    grown = held[-1] - held[0]
    figure = f"{held[0]:.1f} MB at update 10,000, {held[-1]:.1f} at the end"
    yield "memory of the process", figure, f"+{GROWTH:g} MB", grown <= GROWTH


def main() -> int:
    """Print the figures; return 1 when one misses its target."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--million", action="store_true", help="play a million updates instead; about ten minutes")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    rows = million() if given.million else (row for task in PANELS for row in compared(task))
    missed = 0
    for name, figure, target, met in rows:
        missed += not met
        print(f"{name:44}{figure:>42}  {target:10} {'' if met else 'MISSED'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
