"""Comparison with other live plots: the same training, its loss drawn by gradlab, livelossplot, ipympl and others.

    pip install livelossplot trainplot ipympl plotly
    python tests/benchmarks/bench_others.py [--rounds 3]

Each trains digits at 60 updates a second in the same JupyterLab and Chromium and shows every update's loss, after 400
updates that are shown at once. Prints a table in Markdown: medians over the rounds. "Frames/s seen" counts the
browser's animation frames in which the plot was painted; "kernel ms" is the kernel's CPU time besides training.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser.driving import _RUN, ROOT, Notebook, browsing, serving

PLAYED_S = 8.0
SET_UP = f"""import sys, time, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {str(ROOT)!r})
import torch
torch.set_num_threads(1)
from gradlab import Lab, Recipe, Run, tasks
run = Run(tasks.digits(), Recipe(lr=0.05))
losses = []
def update():
    run.advance(updates=1)
    losses.append(run.record.loss)
for _ in range(400):
    update()
"""
# Trains at 60 updates a second; the result is seconds, CPU time besides training, and the number of updates.
LOOP = """show(list(range(1, len(losses) + 1)), losses)
time.sleep(1)
began, busy, trained, updates = time.perf_counter(), time.process_time(), 0.0, 0
while time.perf_counter() - began < {seconds}:
    start = time.process_time()
    update()
    trained += time.process_time() - start
    show(list(range(1, len(losses) + 1)), losses)
    updates += 1
    time.sleep(max(began + updates / 60 - time.perf_counter(), 0))
result = (time.perf_counter() - began, time.process_time() - busy - trained, updates)
"""
# Adds a cell below the others and starts it.
RUN_CELL_BELOW = """source => {
  const notebook = jupyterapp.shell.currentWidget.content;
  const cells = notebook.model.sharedModel;
  cells.insertCell(cells.cells.length, {cell_type: 'code', source, metadata: {}, outputs: []});
  notebook.activeCellIndex = cells.cells.length - 1;
  jupyterapp.commands.execute('notebook:run-cell');
}"""
# Counts the animation frames in which something was painted.
COUNT_FRAMES = """() => {
  window.frames_seen = 0;
  let last = -1;
  const countFrame = () => {
    if (document.timeline.currentTime !== last) window.frames_seen += 1;
    last = document.timeline.currentTime;
  };
  %s
}"""
CANVAS = """const proto = CanvasRenderingContext2D.prototype, name = '%s', was = proto[name].was ?? proto[name];
  proto[name] = function (...args) {
    if (document.querySelector('.jp-OutputArea canvas') === this.canvas) countFrame();
    return was.apply(this, args);
  };
  proto[name].was = was;"""
CHANGES = """window.observer?.disconnect();
  window.observer = new MutationObserver(changes => { if (changes.some(change => %s)) countFrame(); });
  window.observer.observe(document.querySelector('.jp-Notebook'), %s);"""


@dataclass(frozen=True)
class Plot:
    """A way to show a loss: Python that defines ``show(x, y)``, and JavaScript that counts its pictures."""

    name: str
    package: str
    set_up: str
    count: str


OTHERS = (
    Plot(
        "livelossplot",
        "livelossplot",
        """%matplotlib inline
from livelossplot import PlotLosses
plots = PlotLosses()
def show(x, y):
    for loss in y if not len(plots.logger.log_history) else y[-1:]:
        plots.update({"loss": loss})
    plots.send()
""",
        CHANGES
        % ("[...change.addedNodes].some(node => node.querySelector?.('img'))", "{childList: true, subtree: true}"),
    ),
    Plot(
        "trainplot",
        "trainplot",
        """from trainplot import TrainPlot
plot = TrainPlot(update_period=0)
def show(x, y):
    for loss in y if not plot.data else y[-1:]:
        plot.update(loss=loss)
""",
        CANVAS % "strokeRect",
    ),
    Plot(
        "ipympl",
        "ipympl",
        """%matplotlib widget
import matplotlib.pyplot as plt
figure, axes = plt.subplots(figsize=(4.0, 2.6))
(line,) = axes.plot([])
plt.show()
def show(x, y):
    line.set_data(x, y)
    axes.relim()
    axes.autoscale_view()
    figure.canvas.draw()
""",
        CANVAS % "drawImage",
    ),
    Plot(
        "FigureWidget",
        "plotly",
        """import plotly.graph_objects as go
figure = go.FigureWidget(data=[go.Scatter(x=[], y=[], mode="lines")], layout={"width": 400, "height": 260})
display(figure)
def show(x, y):
    with figure.batch_update():
        figure.data[0].x, figure.data[0].y = x, y
""",
        CHANGES
        % (
            "change.target.classList.contains('js-line')",
            "{attributes: true, attributeFilter: ['d'], subtree: true}",
        ),
    ),
)


def measure_other(page: Notebook, plot: Plot) -> dict[str, float]:
    """Return the figures of another package, called from a loop in a cell."""
    page.page.evaluate(_RUN, [SET_UP + "result = None", plot.set_up])
    page.page.wait_for_timeout(4000)
    page.page.evaluate(RUN_CELL_BELOW, LOOP.format(seconds=PLAYED_S))
    page.page.wait_for_timeout(500)
    page.page.evaluate(COUNT_FRAMES % plot.count)
    page.page.wait_for_timeout(PLAYED_S * 1000)
    seconds, busy, updates = page.ask("result")  # waits for the loop's end
    page.page.wait_for_timeout(1500)
    return figures(page.page.evaluate("() => window.frames_seen"), seconds, busy, updates)


def measure_lab(page: Notebook, panels: list[str] | None) -> dict[str, float]:
    """Return the figures of a lab that plays 60 updates a second."""
    timed = """
spent, advance = [0.0], getattr(Run.advance, "alone", Run.advance)
def timed(*args, **kwargs):
    start = time.process_time()
    try:
        return advance(*args, **kwargs)
    finally:
        spent[0] += time.process_time() - start
timed.alone = advance
Run.advance = timed
lab = Lab("digits", Recipe(lr=0.05), panels={panels})
lab.run(400)"""
    page.page.evaluate(_RUN, [SET_UP + timed.format(panels=panels), "lab"])
    page.page.wait_for_selector(".gradlab canvas")
    page.page.wait_for_timeout(2500)
    page.page.evaluate(COUNT_FRAMES % (CANVAS % "clearRect"))
    click = "() => document.querySelector('.gradlab .gl-main').click()"
    page.page.evaluate(click)
    page.page.wait_for_timeout(2000)
    now = "(time.perf_counter(), time.process_time() - spent[0], lab.runner.updates)"
    before, frames = page.ask(now), page.page.evaluate("() => window.frames_seen")
    page.page.wait_for_timeout(PLAYED_S * 1000)
    frames = page.page.evaluate("() => window.frames_seen") - frames
    seconds, busy, updates = (b - a for a, b in zip(before, page.ask(now), strict=True))
    page.page.evaluate(click)
    page.page.wait_for_timeout(1000)
    return figures(frames, seconds, busy, updates)


def figures(frames: float, seconds: float, busy: float, updates: float) -> dict[str, float]:
    """Return the entries of a row of the table."""
    frames = min(frames, updates)  # some paint an update twice
    return {
        "frames/s": frames / seconds,
        "kernel ms a frame": 1000 * busy / max(frames, 1),
        "updates/s": updates / seconds,
    }


def main() -> int:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    results: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    start = time.time()
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as jupyter:
        for number in range(options.rounds):
            with browsing(jupyter, Path(home) / "profile", f"others-{number}.ipynb") as page:
                page.page.set_viewport_size({"width": 1366, "height": 768})
                measured = {
                    "gradlab, the loss alone": measure_lab(page, ["loss"]),
                    "gradlab, four panels": measure_lab(page, None),
                }
                for plot in OTHERS:
                    name = f"{plot.package} {version(plot.package)}"
                    measured[name if plot.name == plot.package else f"{name}, {plot.name}"] = measure_other(page, plot)
                for name, row in measured.items():
                    for key, value in row.items():
                        results[name][key].append(value)
    print("| | frames/s seen | kernel ms a frame | updates/s |\n|---|---|---|---|")
    for name, row in results.items():
        frames, busy, updates = (statistics.median(row[key]) for key in ("frames/s", "kernel ms a frame", "updates/s"))
        print(f"| {name} | {frames:.1f} | {busy:.1f} | {updates:.0f} |")
    load = psutil.getloadavg()[2]
    print(
        f"\n{platform.processor() or platform.machine()}, {psutil.cpu_count()} cores, load {load:.1f}, "
        f"{options.rounds} rounds, {time.time() - start:.0f} s, Python {platform.python_version()}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
