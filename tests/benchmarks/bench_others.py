"""Beside other live plots: the same training, its loss drawn by gradlab, livelossplot, trainplot, ipympl and plotly.

    pip install livelossplot trainplot ipympl plotly
    python tests/benchmarks/bench_others.py [--rounds 3]

Each trains digits at 60 updates a second in the same JupyterLab and Chromium and shows every update's loss, after 400
updates that are shown at once. Prints a table in Markdown: medians over the rounds. A frame that was seen is an
animation frame of the browser in which the plot was painted; "kernel ms" is all that the kernel does beside training.
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

SECONDS = 8.0
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
# Trains at 60 updates a second, and tells how many there were and how long the processor was at work on the rest.
LOOP = """show(list(range(1, len(losses) + 1)), losses)
time.sleep(1)
began, busy, trained, updates = time.perf_counter(), time.process_time(), 0.0, 0
while time.perf_counter() - began < {seconds}:
    at = time.process_time()
    update()
    trained += time.process_time() - at
    show(list(range(1, len(losses) + 1)), losses)
    updates += 1
    time.sleep(max(began + updates / 60 - time.perf_counter(), 0))
told = (time.perf_counter() - began, time.process_time() - busy - trained, updates)
"""
# Adds a cell below the others and runs it; does not wait for it.
MORE = """source => {
  const notebook = jupyterapp.shell.currentWidget.content;
  const cells = notebook.model.sharedModel;
  cells.insertCell(cells.cells.length, {cell_type: 'code', source, metadata: {}, outputs: []});
  notebook.activeCellIndex = cells.cells.length - 1;
  jupyterapp.commands.execute('notebook:run-cell');
}"""
# Counts the animation frames in which something was painted; two paintings in one of them are one picture.
COUNT = """() => {
  window.frames_seen = 0;
  let last = -1;
  const seen = () => {
    if (document.timeline.currentTime !== last) window.frames_seen += 1;
    last = document.timeline.currentTime;
  };
  %s
}"""
CANVAS = """const proto = CanvasRenderingContext2D.prototype, name = '%s', was = proto[name].was ?? proto[name];
  proto[name] = function (...given) {
    if (document.querySelector('.jp-OutputArea canvas') === this.canvas) seen();
    return was.apply(this, given);
  };
  proto[name].was = was;"""
CHANGES = """window.observer?.disconnect();
  window.observer = new MutationObserver(changes => { if (changes.some(change => %s)) seen(); });
  window.observer.observe(document.querySelector('.jp-Notebook'), %s);"""


@dataclass(frozen=True)
class Plot:
    """A way to show a loss: its set-up, which defines ``show(x, y)``, and what counts the pictures in the page."""

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


def other(page: Notebook, plot: Plot) -> dict[str, float]:
    """Return the figures of another package: its calls stand in a loop in a cell."""
    page.page.evaluate(_RUN, [SET_UP + "told = None", plot.set_up])
    page.page.wait_for_timeout(4000)
    page.page.evaluate(MORE, LOOP.format(seconds=SECONDS))
    page.page.wait_for_timeout(500)
    page.page.evaluate(COUNT % plot.count)
    page.page.wait_for_timeout(SECONDS * 1000)
    seconds, busy, updates = page.ask("told")  # waits for the loop's end
    page.page.wait_for_timeout(1500)
    return figures(page.page.evaluate("() => window.frames_seen"), seconds, busy, updates)


def ours(page: Notebook, panels: list[str] | None) -> dict[str, float]:
    """Return the figures of a lab that plays 60 updates a second."""
    timed = """
spent, advance = [0.0], getattr(Run.advance, "alone", Run.advance)
def timed(*args, **kwargs):
    at = time.process_time()
    try:
        return advance(*args, **kwargs)
    finally:
        spent[0] += time.process_time() - at
timed.alone = advance
Run.advance = timed
lab = Lab("digits", Recipe(lr=0.05), panels={panels})
lab.run(400)"""
    page.page.evaluate(_RUN, [SET_UP + timed.format(panels=panels), "lab"])
    page.page.wait_for_selector(".gradlab canvas")
    page.page.wait_for_timeout(2500)
    page.page.evaluate(COUNT % (CANVAS % "clearRect"))
    click = "() => document.querySelector('.gradlab .gl-main').click()"
    page.page.evaluate(click)
    page.page.wait_for_timeout(2000)
    now = "(time.perf_counter(), time.process_time() - spent[0], lab.runner.updates)"
    before, seen = page.ask(now), page.page.evaluate("() => window.frames_seen")
    page.page.wait_for_timeout(SECONDS * 1000)
    seen = page.page.evaluate("() => window.frames_seen") - seen
    seconds, busy, updates = (b - a for a, b in zip(before, page.ask(now), strict=True))
    page.page.evaluate(click)
    page.page.wait_for_timeout(1000)
    return figures(seen, seconds, busy, updates)


def figures(seen: float, seconds: float, busy: float, updates: float) -> dict[str, float]:
    """Return what a row of the table tells."""
    seen = min(seen, updates)  # some paint an update twice
    return {
        "frames/s": seen / seconds,
        "kernel ms a frame": 1000 * busy / max(seen, 1),
        "updates/s": updates / seconds,
    }


def main() -> int:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    began = time.time()
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as jupyter:
        for number in range(given.rounds):
            with browsing(jupyter, Path(home) / "profile", f"others-{number}.ipynb") as page:
                page.page.set_viewport_size({"width": 1366, "height": 768})
                measured = {"gradlab, the loss alone": ours(page, ["loss"]), "gradlab, four panels": ours(page, None)}
                for plot in OTHERS:
                    name = f"{plot.package} {version(plot.package)}"
                    measured[name if plot.name == plot.package else f"{name}, {plot.name}"] = other(page, plot)
                for name, row in measured.items():
                    for key, value in row.items():
                        found[name][key].append(value)
    print("| | frames/s seen | kernel ms a frame | updates/s |\n|---|---|---|---|")
    for name, row in found.items():
        frames, busy, updates = (statistics.median(row[key]) for key in ("frames/s", "kernel ms a frame", "updates/s"))
        print(f"| {name} | {frames:.1f} | {busy:.1f} | {updates:.0f} |")
    load = psutil.getloadavg()[2]
    print(
        f"\n{platform.processor() or platform.machine()}, {psutil.cpu_count()} cores, load {load:.1f}, "
        f"{given.rounds} rounds, {time.time() - began:.0f} s, Python {platform.python_version()}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
