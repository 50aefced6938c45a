"""What a learner sees: Lab() and the first lab of notebook 00 in JupyterLab and Chromium, over a long line and without.

    python tests/benchmarks/bench_browser.py [--before PATH] [--rounds 1] [--pauses]

``--before`` is a working tree of another version, measured in turn with this one. Each lab plays at every speed, with
zero_grad on and off; each panel's frames are counted as they are painted. ``--pauses`` also measures how soon Pause
takes effect. Prints medians over the rounds, and exits with 1 if one misses its target.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser.driving import _RUN, ROOT, Jupyter, Notebook, browsing, serving
from lag_proxy import LagProxy

SECONDS = 4.0
PAUSES = 3  # a round, at each speed
MOST_WAIT = 15.0  # seconds for a quiet moment
ROUND_TRIP, RATE = 120.0, 20.0  # ms, Mbit/s: Binder or Colab from another continent
SPEEDS = ("statements", "10 updates/s", "60 updates/s", "full speed")
PAUSED_AT = ("60 updates/s", "full speed")
LABS = {
    "Lab()": "Lab()",
    "00": "Lab('digits', Recipe(lr=0.2), controls=['zero_grad', 'speed'], panels=['held-out loss', 'gradient'])",
}

CELL = """import sys, time
sys.path.insert(0, {path!r})
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
from gradlab import Lab, Recipe, Run, tasks

class Bench:
    ended = 0.0  # when the run last stood still

    @staticmethod
    def timed(work):
        def timed(*args, **kwargs):
            try:
                return work(*args, **kwargs)
            finally:
                Bench.ended = time.time()
        return timed

    @staticmethod
    def alone(seconds):
        run = Run(tasks.digits(), lab.runner.recipe)
        run.advance(updates=200)
        began, updates = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            updates += run.advance(seconds=0.1)
        rate = updates / (time.perf_counter() - began)
        run.close()
        return rate

    @staticmethod
    def loss_texts():
        from gradlab.drawing import draw
        screen = lab.model.screen
        drawing = draw(screen.scenes.scene(lab.model.panels()[0]), *screen.size[:2])
        return sorted(mark.text for mark in drawing.marks if type(mark).__name__ == "Text")

Run.advance, Run.step = Bench.timed(Run.advance), Bench.timed(Run.step)
lab = {lab}
lab.run(updates=200)"""
# From now on every painting is noted: of which panel, and when; of the first one also which texts it held.
WATCH = """() => {
  const first = document.querySelector('.gradlab canvas');
  const {clearRect, fillText} = CanvasRenderingContext2D.prototype;
  window.paintings = [];
  window.texts = [];
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    const panel = this.canvas.closest?.('[data-panel]');
    if (panel) window.paintings.push([panel.dataset.panel, performance.now()]);
    if (this.canvas === first) window.texts = [];
    return clearRect.apply(this, box);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    if (this.canvas === first) window.texts.push(text);
    return fillText.call(this, text, ...place);
  };
}"""
PAINTINGS = """async seconds => {
  const began = performance.now();
  await new Promise(resolve => setTimeout(resolve, seconds * 1000));
  return window.paintings.filter(([, time]) => time >= began);
}"""
# Clicks Pause, waits until all is over, and gives back when the click was and when paintings were after it.
PAUSE = """async button => {
  const began = performance.now();
  document.querySelector(button).click();
  await new Promise(resolve => setTimeout(resolve, 1500));
  const after = window.paintings.map(([, time]) => time - began).filter(time => time >= 0);
  return [(performance.timeOrigin + began) / 1000, after];
}"""


PLAY, SPEED, WORDS = ".gradlab .gl-main", ".gradlab .gl-speed select", ".gradlab .gl-state"
Figures = dict[str, list[float]]


class Bench:
    """One lab in one page; each measurement adds to ``figures``."""

    def __init__(self, page: Notebook, path: Path, lab: str, profile: Path, proxy: LagProxy | None) -> None:
        self.page, self.proxy = page, proxy
        page.page.emulate_media(reduced_motion="reduce")  # motion between two frames is none of the kernel's
        page.page.set_viewport_size({"width": 1366, "height": 768})
        page.side_bar(False)
        page.page.evaluate(_RUN, [CELL.format(path=str(path), lab=lab)])
        page.page.wait_for_selector(".gradlab canvas", timeout=60_000)
        page.page.wait_for_timeout(1500)
        page.page.evaluate("css => document.querySelector(css).scrollIntoView()", ".gradlab")
        page.page.evaluate(WATCH)
        self.kernel = psutil.Process(page.ask("__import__('os').getpid()"))
        browsers = [
            p for p in psutil.process_iter(["cmdline"]) if f"--user-data-dir={profile}" in (p.info["cmdline"] or ())
        ]
        self.browser = min(browsers, key=lambda process: process.create_time())
        self.figures: Figures = {}

    def processes(self) -> list[psutil.Process]:
        """Return the browser's processes."""
        return [self.browser, *self.browser.children(recursive=True)]

    def play(self, speed: str, name: str = "") -> None:
        """Play at a speed, and measure what is seen, sent and used."""
        name = name or speed
        wait_for_quiet()
        alone = [self.page.ask("Bench.alone(1)")] if speed == "full speed" else []
        self.page.page.locator(SPEED).first.select_option(label=speed)
        self.click()
        self.page.page.wait_for_timeout(2500)  # until the clock has found its pace
        used = Used(self.kernel, self.processes(), self.proxy)
        began, first = self.page.ask("(__import__('time').time(), lab.runner.updates)")
        times = self.page.page.evaluate(PAINTINGS, SECONDS)
        ended, last = self.page.ask("(__import__('time').time(), lab.runner.updates)")
        figures = used.since(self.processes())
        self.click()
        self.page.page.wait_for_timeout(1500)
        panels = self.page.page.evaluate(
            "() => [...document.querySelectorAll('[data-panel]')].map(p => p.dataset.panel)"
        )
        for panel in panels:
            own = [time for name, time in times if name == panel]
            figures[f"{panel}, frames/s"] = len(own) / SECONDS
        gaps = [later - earlier for earlier, later in pairwise(t for name, t in times if name == panels[0])]
        figures["95 % of gaps, ms"] = statistics.quantiles(gaps, n=20)[-1] if len(gaps) > 1 else SECONDS * 1000
        figures["updates/s"] = (last - first) / (ended - began)
        if alone:  # before and after, for a machine that others use too
            figures["Run.advance alone, updates/s"] = mean = statistics.mean([*alone, self.page.ask("Bench.alone(1)")])
            figures["of Run.advance alone"] = figures["updates/s"] / mean
        for key, value in figures.items():
            self.add(name, key, value)

    def pause(self, speed: str) -> None:
        """Play for a while, pause, and measure for how long the picture and the run go on."""
        name = f"Pause at {speed}"
        self.page.page.locator(SPEED).first.select_option(label=speed)
        wait_for_quiet()
        for _ in range(PAUSES):
            self.click()
            self.page.page.wait_for_timeout(1500)
            clicked, paintings = self.page.page.evaluate(PAUSE, PLAY)
            # The last painting brings the picture to where the run has ended; it moves until the one before that.
            self.add(name, "the picture moves, ms", paintings[-2] if len(paintings) > 1 else 0.0)
            self.add(name, "last painting, ms", paintings[-1] if paintings else 0.0)
            self.add(name, "the run goes on, ms", max((self.page.ask("Bench.ended") - clicked) * 1000, 0.0))
            self.add(name, "shows the last update", float(self.is_up_to_date()))

    def is_up_to_date(self) -> bool:
        """Do the words, and the texts in the loss panel, tell of the last update?"""
        words = self.page.page.locator(WORDS).first.inner_text()
        told = f"update {self.page.ask('lab.runner.updates'):,}" in words
        painted = sorted(self.page.page.evaluate("() => window.texts"))
        return told and painted == self.page.ask("Bench.loss_texts()")

    def click(self) -> None:
        """Click Play or Pause."""
        self.page.page.evaluate("css => document.querySelector(css).click()", PLAY)

    def add(self, name: str, key: str, value: float) -> None:
        """Note a figure."""
        self.figures.setdefault(f"{name}: {key}", []).append(value)


class Used:
    """What kernel, browser and line have been used for from now on."""

    def __init__(self, kernel: psutil.Process, browser: list[psutil.Process], proxy: LagProxy | None) -> None:
        self.kernel, self.proxy = kernel, proxy
        self.began = time.perf_counter()
        self.before = (busy([kernel]), busy(browser), all_busy(), proxy.down if proxy else 0, proxy.up if proxy else 0)

    def since(self, browser: list[psutil.Process]) -> dict[str, float]:
        """Return shares of a core, and kB/s each way where there is a proxy."""
        seconds = time.perf_counter() - self.began
        line = (self.proxy.down, self.proxy.up) if self.proxy else (0, 0)
        now = (busy([self.kernel]), busy(browser), all_busy(), *line)
        kernel, chromium, used, down, up = ((b - a) / seconds for a, b in zip(self.before, now, strict=True))
        figures = {"kernel, of a core": kernel, "browser, of a core": chromium}
        figures["all else, of a core"] = used - kernel - chromium
        return figures | ({"kB/s down": down / 1000, "kB/s up": up / 1000} if self.proxy else {})


def busy(processes: list[psutil.Process]) -> float:
    """Return the seconds of processor time that these processes have had."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def all_busy() -> float:
    """Return the seconds of processor time that anything has had on this machine."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system)


def wait_for_quiet() -> None:
    """Wait until next to nothing runs on this machine, but not for long: others may use it too."""
    end = time.perf_counter() + MOST_WAIT
    while psutil.cpu_percent(interval=1) > 20 and time.perf_counter() < end:
        pass


def measure(
    jupyter: Jupyter, path: Path, name: str, profile: Path, number: int, proxy: LagProxy | None, *, pauses: bool
) -> Figures:
    """Open a notebook in a browser of its own, and measure one lab over this line."""
    with browsing(jupyter, profile, f"{number}.ipynb") as page:
        bench = Bench(page, path, LABS[name], profile, proxy)
        for zero_grad in (True, False):
            page.turn("zero_grad", zero_grad)
            for speed in SPEEDS:
                bench.play(speed, f"{name}, zero_grad {'on' if zero_grad else 'off'}, {speed}")
        for speed in PAUSED_AT if pauses else ():
            bench.pause(speed)
        for problem in page.problems():
            print(problem, file=sys.stderr)
        page.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        return bench.figures


def at_least(low: float) -> tuple[str, Callable[[float], bool]]:
    """A target from below."""
    return f">= {low:g}", lambda value: value >= low


def at_most(high: float) -> tuple[str, Callable[[float], bool]]:
    """A target from above."""
    return f"<= {high:g}", lambda value: value <= high


def targets(link: str) -> dict[str, tuple[str, Callable[[float], bool]]]:
    """Return what the figures of this version have to be."""
    trip = ROUND_TRIP if link == SLOW else 0.0
    found = {}
    for lab in LABS:
        for state in ("on", "off"):
            at = f"{lab}, zero_grad {state}"
            loss = "held-out loss" if lab == "00" else "loss"
            found[f"{at}, 60 updates/s: {loss}, frames/s"] = at_least(40 if link == SLOW else 45)
            found[f"{at}, 60 updates/s: gradient, frames/s"] = at_least(30)
            for panel in ("picture", "memory"):
                found[f"{at}, 60 updates/s: {panel}, frames/s"] = at_least(8)
            found[f"{at}, 60 updates/s: kernel, of a core"] = at_most(0.3)
            found[f"{at}, 10 updates/s: gradient, frames/s"] = at_least(9)
            found[f"{at}, full speed: of Run.advance alone"] = at_least(0.6)
    for speed in PAUSED_AT:
        found[f"Pause at {speed}: the picture moves, ms"] = at_most(50)
        found[f"Pause at {speed}: the run goes on, ms"] = at_most(300 + trip)
        found[f"Pause at {speed}: shows the last update"] = at_least(1)
    return found


SLOW, LOCAL = f"{ROUND_TRIP:g} ms, {RATE:g} Mbit/s", "local"


def main() -> int:
    """Print the figures; return 1 when one misses its target."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--before", type=Path, help="a working tree of another version")
    arguments.add_argument("--rounds", type=int, default=1)
    arguments.add_argument("--pauses", action="store_true", help="measure Pause, too")
    arguments.add_argument("--labs", nargs="*", choices=LABS, default=list(LABS))
    arguments.add_argument("--links", nargs="*", choices=("local", "long"), default=["local", "long"])
    given = arguments.parse_args()
    versions = {"now": ROOT} | ({"before": given.before.resolve()} if given.before else {})
    found: dict[tuple[str, str], Figures] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as jupyter:
        port = int(jupyter.url.rpartition(":")[2])
        with LagProxy(port, ROUND_TRIP, RATE) as proxy:
            far = Jupyter(f"http://127.0.0.1:{proxy.port}", jupyter.folder, jupyter.log)
            number = 0
            for _ in range(given.rounds):
                for link, server in ((LOCAL, jupyter), (SLOW, far)):
                    if (link == LOCAL and "local" not in given.links) or (link == SLOW and "long" not in given.links):
                        continue
                    for lab, (version, path) in product(given.labs, versions.items()):
                        number += 1
                        line = proxy if server is far else None
                        profile = Path(home) / "profile"
                        figures = measure(server, path, lab, profile, number, line, pauses=given.pauses)
                        for name, values in figures.items():
                            found[link, version][name] += values
    return 1 if report(found, list(versions)) else 0


def report(found: dict[tuple[str, str], Figures], versions: list[str]) -> int:
    """Print a table for each line; return how many targets were missed."""
    missed = 0
    for link in (LOCAL, SLOW):
        print(f"\n{link:52}" + "".join(f"{name:>12}" for name in versions) + "   target")
        wanted = targets(link)
        for name in found[link, "now"]:
            cells = [statistics.median(found[link, version].get(name) or [float("nan")]) for version in versions]
            text, is_met = wanted.get(name, ("", lambda _: True))
            met = is_met(min(found[link, "now"][name]) if name.endswith("shows the last update") else cells[0])
            missed += not met
            print(f"{name:52}" + "".join(f"{cell:12.4g}" for cell in cells) + f"   {text:8}{'' if met else ' MISSED'}")
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
