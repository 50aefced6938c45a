"""The panels over two weights: contours against matplotlib's own, the path that fades, arrows head to tail, a slice."""

from __future__ import annotations

import math
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from made_scenes import BOWL, X, Y, arrows, plane
from matplotlib.figure import Figure

from gradlab.drawing import Drawing, draw
from gradlab.drawing.landscape import surface_of
from gradlab.scenes import Arrows, BatchArrow, Landscape


def rows(drawing: Drawing, id: str) -> np.ndarray:
    return np.asarray(drawing.find(id).points, dtype=float).reshape(-1, 2)


def test_contours_are_matplotlibs() -> None:
    surface = surface_of(BOWL)
    levels = [level for level, _ in surface.levels]
    theirs = Figure().add_subplot().contour(X, Y, np.array(BOWL.loss), levels=levels)
    assert len(levels) == 9
    for (_, line), segments in zip(surface.levels, theirs.allsegs, strict=True):
        ours = line[np.isfinite(line).all(axis=1)]
        assert sorted(map(tuple, ours.round(9))) == sorted(tuple(point) for part in segments for point in part.round(9))
    assert surface.lowest == (0.0, 0.0)
    assert surface_of(BOWL) is surface


def test_a_landscape_holds_contours_and_weights() -> None:
    path = [(-2.0, 1.0), (-1.0, 0.4), (0.3, -0.2)]
    drawing = draw(Landscape(BOWL, path))
    assert rows(drawing, "now").tolist() == [[0.3, -0.2]]
    assert rows(drawing, "start").tolist() == [[-2, 1]]
    for number, (level, _) in enumerate(surface_of(BOWL).levels):
        x, y = rows(drawing, f"contour {number}").T
        finite = np.isfinite(x)
        assert x[finite] ** 2 + 4 * y[finite] ** 2 == pytest.approx(level, abs=0.15)  # to the resolution of the grid
    (axes,) = drawing.axes
    assert (axes.equal, axes.x.words, axes.y.words) == ("fit", "slope", "bias")  # arrows look perpendicular to contours
    assert (axes.x.low, axes.x.high, axes.y.low, axes.y.high) == (-3, 3, -2, 2)
    assert (drawing.find("now").drag, drawing.find("now").words) == ("weights", "drag to another start")
    assert draw(Landscape(BOWL, [(0.0, 0.0), (1e6, 2.0)])).notice == "weights at 1e6, 2, outside this picture"


def test_what_stands_for_a_thing_moves() -> None:
    arrow = BatchArrow((4, 4), 1.0, 0.5, 1.0, (1, 1))
    marks = [*draw(Arrows([arrow], (1.0, 0.5), [(4, 4)], BOWL, path=[(0.5, 0.5)])).marks]
    marks += draw(Landscape(BOWL, [(0.0, 1.0)])).marks
    assert {mark.id for mark in marks if getattr(mark, "moves", False)} == {"sum", "arrow 0", "now"}


def test_the_path_fades_in_thirds_and_is_whole() -> None:
    path = [(2 * math.cos(i / 20), math.sin(i / 20)) for i in range(120)]
    drawing = draw(Landscape(BOWL, path))
    parts = [f"path {number}" for number in range(3)]
    assert [drawing.find(part).stroke for part in parts] == ["weights/20", "weights/45", "weights"]
    first, second, third = (rows(drawing, part) for part in parts)
    assert np.concatenate([first, second[1:], third[1:]]).tolist() == [list(point) for point in path]
    assert first[-1].tolist() == second[0].tolist()
    assert all(abs(len(part) - 40) < 8 for part in (first, second, third))


NUMBER = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, 1e300, -1e308, 1e-310]))


@pytest.mark.parametrize("scene", [arrows(True), *(plane(scale) for scale in (1e-9, 0.3, 1.0, 7e12))])
def test_arrows_lie_head_to_tail_and_add_up_to_the_sum(scene: Arrows) -> None:
    drawing = draw(scene)
    ends = [rows(drawing, f"arrow {number}") for number in range(3)]
    tail, tip = rows(drawing, "sum")
    assert [each[0].tolist() for each in ends] == [tail.tolist(), ends[0][1].tolist(), ends[1][1].tolist()]
    assert ends[2][1] == pytest.approx(tip)
    factor = (tip - tail)[0] / scene.total[0]
    for arrow, (begin, end) in zip(scene.arrows, ends, strict=True):
        assert end - begin == pytest.approx(np.array([arrow.x, arrow.y]) * factor)
    if scene.contours is not None:
        assert tail.tolist() == rows(drawing, "now")[0].tolist() == [*scene.path[-1]]
        assert factor == pytest.approx(
            float(drawing.corner[-1].removeprefix("arrows \u00d7 ").replace("arrows true length", "1"))
        )
        return
    assert {"40 batches \u00d7 2\u201341", "41", "batch 42"} <= set(drawing.texts())


@hypothesis.given(st.lists(st.tuples(NUMBER, NUMBER), max_size=9), st.booleans(), st.tuples(NUMBER, NUMBER))
def test_axes_hold_all_arrows_and_nothing_is_no_number(
    steps: list[tuple[float, float]], on_contours: bool, weights: tuple[float, float]
) -> None:
    batches = [BatchArrow((n, n), x, y, x, (n % 3, n % 3)) for n, (x, y) in enumerate(steps, 1)]
    total = sum(x for x, _ in steps), sum(y for _, y in steps)
    more: dict[str, Any] = {"contours": BOWL, "path": [weights]} if on_contours else {}
    drawing = draw(Arrows(batches, total, [(1, 9)], **more))
    points = np.concatenate(
        [mark.points for mark in drawing.marks if mark.id.startswith(("sum", "arrow ")) and hasattr(mark, "points")]
    )
    assert np.isfinite(points).all()
    assert (drawing.notice == "inf or NaN in .grad") == (not np.isfinite([*total, *np.ravel(steps)]).all())
    if not on_contours:
        axes, (x, y) = drawing.axes[0], points.reshape(-1, 2).T
        slack = 1e-9 * np.abs(points).max()
        for axis, values in ((axes.x, x), (axes.y, y)):
            assert axis.low - slack <= values.min() <= values.max() <= axis.high + slack


def test_arrows_look_by_how_often_they_were_applied() -> None:
    drawing = draw(arrows(True))
    looks = [(mark.fill, mark.hatch, mark.dash, mark.press) for mark in map(drawing.find, ("arrow 1", "arrow 2"))]
    assert looks == [("reused", "//", "dashed", "batch 3"), ("paper", "", "", "batch 4")]
    assert drawing.find("arrow 1").words == "batch 3: 40% of the sum, applied 2 times"
    assert [drawing.find(f"arrow name {n}").texts[0] for n in range(3)] == [
        "2 batches \u00d7 2\u20133",
        "3 \u00d7 2",
        "batch 4",
    ]
    assert drawing.find("arrow 0").press == ""
    assert draw(arrows(False)).find("arrow 1").fill == "fresh"
    assert [key.fill for key in drawing.key] == ["paper", "fresh", "reused", "faint", "weights"]


def test_the_gradient_is_told_in_words_with_the_shares() -> None:
    assert draw(plane()).words == (
        "|grad| 4 holds batches 1\u201342. batch 42: 50% of the sum, not applied yet; "
        "batch 41: \u221275% of the sum, applied once; batches 1\u201340: 125% of the sum, applied 2 to 41 times."
    )
    empty = draw(Arrows([], (0, 0)))
    assert empty.words == ".grad holds no batch."
    assert empty.notice == "no arrow: .grad is None or 0"
    assert not draw(plane()).notice
    assert "was not measured" in draw(Arrows([], (3, 0), [(1, 4)], measured=False)).words
