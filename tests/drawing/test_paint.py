"""Stills: every mark at its numbers in its colour, and nothing of the learner's own settings."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import warnings
import weakref
from typing import Any

import matplotlib
import numpy as np
import pytest
from made_scenes import DEGENERATE, USUAL, curve
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image as Picture

from gradlab.drawing import (
    AXES_EDGE,
    Area,
    Arrow,
    Axes,
    Axis,
    Band,
    Dots,
    Drawing,
    Image,
    Key,
    Line,
    Listing,
    Mark,
    Text,
    colour,
    draw,
    gradlab_style,
    in_rows,
    to_png,
    to_svg,
)  # fmt: skip
from gradlab.drawing.marks import DASHES, SHAPES
from gradlab.drawing.paint import make_figure

pytestmark = pytest.mark.filterwarnings("error")
BARE = Axis(0, 100, ticks="none")
Roles = dict[tuple[float, float], str]


def rgb(role: str) -> list[int]:
    return [int(colour(role)[digit : digit + 2], 16) for digit in (1, 3, 5)]


class Painted:
    """The pixels of a Drawing, read at numbers of its axes; 2 for a CSS pixel."""

    def __init__(self, *marks: Mark, axes: tuple[Axes, ...] = (Axes(BARE, BARE),), **more: Any) -> None:
        with gradlab_style():
            figure = make_figure(in_rows([Drawing("", marks, axes, **more)], 1, (222, 238)), 2.0)
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
        self.pixels = np.asarray(canvas.buffer_rgba())[..., :3].astype(int)
        self.plots = figure.axes

    def pixel(self, x: float, y: float, plot: int = 0) -> list[int]:
        across, up = self.plots[plot].transData.transform((x, y))
        return self.pixels[len(self.pixels) - 1 - int(up), int(across)].tolist()

    def count(self, role: str) -> int:
        return int((np.abs(self.pixels - rgb(role)).max(axis=2) < 40).sum())


def square(low: float, high: float) -> tuple[float, ...]:
    return low, low, high, low, high, high, low, high


def test_marks_are_painted_where_they_say() -> None:
    painted = Painted(
        Area("area", (10, 10, 30, 10, 30, 25, 10, 25), fill="weights"),
        Band("band", np.array([50, 10, 20, 70, 20, 40]), fill="gradients/50", stroke="ink"),
        Dots("dots", (15, 40, 25, 40, -3, 40), shape="diamond", size=8, fill="reused"),
        Image("image", (50, 40, 70, 60), 2, [0, 1, 2, 3], ("ink", "activations", "scale/50", "weights")),
        Line("line", (5, 90, 95, 90, np.nan, np.nan, 5, 80, 200, 80), stroke="optimizer", width=4),
        Arrow("arrow", (10, 65, 40, 65), width=2.0, fill="fresh"),
        Area("edge", (90, -AXES_EDGE, AXES_EDGE, -AXES_EDGE, AXES_EDGE, 10, 90, 10), fill="loss"),
    )
    spots: dict[tuple[float, float], str] = {
        (20, 15): "weights",
        (60, 20): "gradients/50",
        (15, 40): "reused",
        (25, 40): "reused",
        (20, 40): "paper",
    }
    cells: Roles = {
        (55, 55): "ink",
        (65, 55): "activations",
        (55, 45): "scale/50",
        (65, 45): "weights",
        (50, 90): "optimizer",
    }
    others: Roles = {(99, 1): "loss", (30, 65): "fresh", (99, 80): "optimizer", (60, 85): "paper", (60, 15.2): "ink"}
    corners: Roles = {(10.5, 10.5): "weights", (29.5, 24.5): "weights", (9.5, 10.5): "paper", (30.5, 24): "paper"}
    for point, role in {**spots, **cells, **others, **corners}.items():
        assert painted.pixel(*point) == pytest.approx(rgb(role), abs=2), point
    left = int(painted.plots[0].get_window_extent().x0)
    assert (painted.pixels[:, : left - 3] == 255).all(), "what is outside of the axes is cut off"


def test_log_axes_and_axes_below_have_numbers_of_their_own() -> None:
    axes = Axes(Axis(0, 10), Axis(1, 1e4, log=True)), Axes(Axis(0, 10), Axis(0, 1), share=0.5, caption="below")
    painted = Painted(
        Line("a", (0, 100, 10, 100), "loss", 6), Line("b", (0, 0.5, 10, 0.5), "reused", 6, axes=1), axes=axes
    )
    assert [painted.pixel(5, 100), painted.pixel(5, 0.5, 1)] == [rgb("loss"), rgb("reused")]
    boxes = [plot.get_window_extent() for plot in painted.plots]
    assert boxes[0].height == pytest.approx(2 * boxes[1].height)
    assert boxes[0].y0 > boxes[1].y1
    middle = boxes[0].y0 + boxes[0].height / 2
    assert painted.plots[0].transData.transform((5, 100))[1] == pytest.approx(middle)


@pytest.mark.parametrize("equal", ["fit", "fill"])
def test_a_unit_is_as_long_along_both_axes(equal: str) -> None:
    for x, y in ((Axis(0, 100), Axis(0, 10)), (Axis(0, 10), Axis(0, 100))):
        (plot,) = Painted(axes=(Axes(x, y, equal),)).plots
        (x0, y0), (x1, y1) = plot.transData.transform([(0, 0), (1, 1)])
        assert x1 - x0 == pytest.approx(y1 - y0)
        assert plot.get_xlim()[1] >= x.high
        assert plot.get_ylim()[1] >= y.high


def test_what_comes_later_lies_in_front_of_what_came_before() -> None:
    marks = Area("a", square(0, 100), fill="weights"), Area("b", square(30, 60), fill="loss")
    assert [Painted(*marks).pixel(x, x) for x in (10, 40)] == [rgb("weights"), rgb("loss")]
    faint = Painted(*marks, faint=True).pixel(10, 10)
    assert faint == pytest.approx(255 - 0.4 * (255 - np.array(rgb("weights"))), abs=2)
    notice = Painted(*marks, notice="inf or NaN in .grad")
    assert notice.pixel(50, 20) != rgb("loss")
    assert notice.count("paper") > Painted(*marks).count("paper")
    assert Painted(notice="nothing to show").count("ink") > 50


def test_a_hatch_a_dash_and_every_shape_are_seen() -> None:
    for hatch in ("//", "\\\\", "..", "--"):
        painted = Painted(Area("a", square(0, 100), fill="gradients/50", hatch=hatch))
        assert 0.02 < painted.count("ink") / (400 * 400) < 0.4
    whole, *parts = (Painted(Line("a", (0, 50, 100, 50), "ink", 3, dash)).count("ink") for dash in DASHES)
    assert all(20 < part < 0.8 * whole for part in parts)
    for shape in SHAPES:
        dots = Dots("a", (50, 50, 50, 101), shape=shape, size=12, fill="ink", stroke="ink", width=2)
        assert 20 < Painted(dots).count("ink") < 1200, shape
    key = Painted(key=(Key(("a",), "weights", "ink", hatch="//"), Key(("b",), "reused")))
    assert min(key.count("weights"), key.count("reused")) > 200
    swatch = Text("t", ("name",), 0, 50, where="margin", swatch=Key(("a",), "weights"))
    assert Painted(swatch).count("weights") > 200


def test_several_panels_stand_in_rows() -> None:
    def panel(role: str) -> Drawing:
        return Drawing("", [Area("a", square(0, 100), fill=role)], (Axes(BARE, BARE),))

    loop = Listing("loss.backward()\nstep()", 100, lit=[1])
    panels = [panel("weights"), panel("reused"), panel("optimizer")]
    sheet = in_rows(panels, 2, (120, 100), last=240, beside=loop, above=Listing("", 300, sentences=["careful"]))
    pixels = np.array(Picture.open(io.BytesIO(to_png(sheet, 1))).convert("RGB"))
    assert pixels.shape == (30 + 200, 100 + 10 + 240, 3)
    for (x, y), role in {(170, 100): "weights", (290, 100): "reused", (300, 200): "optimizer"}.items():
        assert pixels[y, x].tolist() == rgb(role)
    assert (pixels[30:80, :100] == rgb("activations/40")).all(axis=2).sum() > 1000
    assert to_png([])
    with pytest.raises(ValueError, match="columns must be at least 1, got 0"):
        in_rows([], 0, (9, 9))


@pytest.mark.slow
def test_a_png_has_the_frequent_colours_exactly_and_is_small() -> None:
    sheet = in_rows([draw(scene) for scene in USUAL], 3, (465, 260))
    png = to_png(sheet)
    pixels = np.array(Picture.open(io.BytesIO(png)).convert("RGB")).astype(int)
    assert len(png) < 400_000
    for role in ("paper", "ink", "fresh", "reused", "weights", "faint"):
        assert (np.abs(pixels - rgb(role)).max(axis=2) <= 2).any(), role
    assert (pixels == 255).all(axis=2).mean() > 0.5


@pytest.mark.slow
def test_degenerate_scenes_are_painted_without_a_warning() -> None:
    for density in (0.5, 1.0):
        assert to_png(in_rows([draw(scene) for scene in DEGENERATE], 6, (260, 200)), density)


@pytest.mark.slow
def test_the_learners_own_settings_change_nothing() -> None:
    sheet = in_rows([draw(scene) for scene in USUAL[:4]], 2, (400, 260))
    plain, text = to_png(sheet), to_svg(sheet)
    odd: dict[Any, Any] = {"text.color": "red", "font.size": 30, "lines.linewidth": 9, "hatch.linewidth": 7}
    with matplotlib.rc_context(odd | {"savefig.dpi": 10, "axes.grid": True, "image.cmap": "hot"}):
        assert to_png(sheet) == plain
        assert to_svg(sheet) == text
        assert matplotlib.rcParams["font.size"] == 30
    assert text.count("<svg") == 1
    assert "dc:date" not in text
    script = "import sys, gradlab.drawing; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_nothing_is_left_after_painting(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[weakref.ref[Figure]] = []

    def remember(*args: Any) -> Figure:
        figures.append(weakref.ref(figure := make_figure(*args)))
        return figure

    monkeypatch.setattr("gradlab.drawing.paint.make_figure", remember)
    with warnings.catch_warnings():
        to_png(in_rows([draw(curve(60))], 1, (400, 260)))
        to_svg(in_rows([draw(curve(60))], 1, (400, 260)))
    gc.collect()
    assert [figure() for figure in figures] == [None, None]
