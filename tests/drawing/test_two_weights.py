"""The panels over two weights: contours against matplotlib's own, the path that fades, arrows head to tail, a slice."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from made_scenes import BOWL, X, Y, arrows, plane, random_arrows
from matplotlib.figure import Figure

from gradlab.drawing import Drawing, Path, draw
from gradlab.drawing.gradient import plane_axes
from gradlab.drawing.labels import text_box
from gradlab.drawing.landscape import surface_of, thin
from gradlab.scenes import Arrow, Arrows, Landscape, Slice

SIZES = [(260, 200), (400, 260), (900, 380)]


def points(drawing: Drawing, id: str) -> np.ndarray:
    return np.asarray(drawing.find(id).points, dtype=float).reshape(-1, 2)


def reader(scene: Landscape, *size: int) -> tuple[Drawing, np.ndarray, np.ndarray]:
    """The drawing with start and step of both axes."""
    drawing = draw(scene, *size)
    drag = drawing.find("now").drag
    return drawing, np.array([drag.x.start, drag.y.start]), np.array([drag.x.per_pixel, drag.y.per_pixel])


def test_contours_are_matplotlibs() -> None:
    surface = surface_of(BOWL)
    levels = [level for level, _ in surface.levels]
    theirs = Figure().add_subplot().contour(X, Y, np.array(BOWL.loss), levels=levels)
    assert len(levels) == 9
    for (_, line), segments in zip(surface.levels, theirs.allsegs, strict=True):
        mine = line[np.isfinite(line).all(axis=1)]
        assert sorted(map(tuple, mine.round(9))) == sorted(tuple(point) for part in segments for point in part.round(9))
    assert surface.lowest == (0.0, 0.0)
    assert surface_of(BOWL) is surface


@pytest.mark.parametrize("size", [*SIZES, (300, 420)])
def test_marks_lie_where_the_weights_are(size: tuple[int, int]) -> None:
    path = [(-2.0, 1.0), (-1.0, 0.4), (0.3, -0.2)]
    drawing, start, step = reader(Landscape(BOWL, path), *size)
    assert start + step * points(drawing, "now")[0] == pytest.approx(path[-1])
    assert start + step * points(drawing, "start")[0] == pytest.approx(path[0])
    for number, (level, _) in enumerate(surface_of(BOWL).levels):
        line = points(drawing, f"contour {number}")
        x, y = (start + step * line[np.isfinite(line).all(axis=1)]).T
        assert x**2 + 4 * y**2 == pytest.approx(level, abs=0.15)  # to the resolution of the grid
    assert abs(step[0]) == pytest.approx(abs(step[1]), rel=0.02)  # arrows must look perpendicular to contours
    assert (drawing.find("now").drag.name, drawing.find("now").words) == ("weights", "drag to another start")
    assert "weights at 1e6, 2" in draw(Landscape(BOWL, [(0.0, 0.0), (1e6, 2.0)])).texts()
    assert not any("outside" in text for text in draw(Landscape(BOWL, [(0.0, 0.0), (3.5, 2.0)])).texts())


def test_what_stands_for_a_thing_moves() -> None:
    arrow = Arrow((4, 4), 1.0, 0.5, 1.0, applied=True)
    marks = [*draw(Arrows([arrow], (1.0, 0.5), [(4, 4)], BOWL, (0.5, 0.5))).marks]
    marks += draw(Landscape(BOWL, [(0.0, 1.0)])).marks
    assert {mark.id for mark in marks if getattr(mark, "moves", False)} == {"sum", "arrow 0", "weights", "now"}
    assert [mark.done for mark in marks if mark.id in ("sum", "arrow 0")] == ["", "applied"]


def test_the_path_fades_in_thirds_and_is_whole() -> None:
    path = [(2 * math.cos(at / 20), math.sin(at / 20)) for at in range(120)]
    drawing, start, step = reader(Landscape(BOWL, path))
    parts = [f"path {number}" for number in range(3)]
    assert [drawing.find(part).stroke for part in parts] == ["weights/20", "weights/45", "weights"]
    ends = [start + step * points(drawing, part) for part in parts]
    assert ends[0][-1] == pytest.approx(ends[1][0])
    assert ends[1][-1] == pytest.approx(ends[2][0])
    assert np.concatenate([ends[0], ends[1][1:], ends[2][1:]]) == pytest.approx(np.array(path))
    assert all(abs(len(part) - 40) < 8 for part in ends)
    places = np.array([[1.0, 1.0], [1.01, 1.0], [1.5, 1.0], [1.5, 1.02], [1.0, 1.0]])
    assert thin(places).tolist() == [[1.0, 1.0], [1.5, 1.0], [1.0, 1.0]]  # points on one spot are sent once


def tip_and_tail(drawing: Drawing, id: str) -> tuple[np.ndarray, np.ndarray]:
    corners = points(drawing, id)
    return corners[3], (corners[0] + corners[6]) / 2


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scene", [arrows(True), *(plane(scale) for scale in (1e-9, 0.3, 1.0, 7e12))])
def test_arrows_lie_head_to_tail_and_end_at_the_sum(scene: Arrows, size: tuple[int, int]) -> None:
    drawing = draw(scene, *size)
    ends = [tip_and_tail(drawing, f"arrow {at}") for at in range(3)]
    total = tip_and_tail(drawing, "sum")
    assert ends[0][1] == pytest.approx(total[1])
    assert ends[1][1] == pytest.approx(ends[0][0])
    assert ends[2][1] == pytest.approx(ends[1][0])
    assert ends[2][0] == pytest.approx(total[0])  # the three add up to what .grad holds
    per_unit = (total[0] - total[1])[0] / scene.total[0]
    for arrow, (tip, tail) in zip(scene.arrows, ends, strict=True):
        assert tip - tail == pytest.approx(np.array([arrow.x, -arrow.y]) * per_unit, rel=0.03, abs=1e-6)
    if scene.contours is not None:
        assert total[1] == pytest.approx(points(drawing, "weights")[0])
        return
    axes = plane_axes(*size, np.cumsum([(arrow.x, arrow.y) for arrow in scene.arrows], axis=0))
    assert all(axes.left <= x <= axes.right and axes.top <= y <= axes.bottom for (x, y), _ in ends)
    if size[0] >= 900:
        assert {"1\u201340: 125%", "41: \u221275%", "42: 50%"} <= set(drawing.texts())


def test_stale_and_fresh_arrows_are_told_apart_and_pressed() -> None:
    drawing = draw(arrows(True))
    looks = [(mark.fill, mark.hatch, mark.dash, mark.press) for mark in map(drawing.find, ("arrow 1", "arrow 2"))]
    assert looks == [("stale", "//", "dashed", "batch 3"), ("fresh", "", "", "batch 4")]
    assert drawing.find("arrow 1").words == "batch 3: 40% of the sum, already applied"
    assert drawing.find("arrow 0").press == ""
    assert draw(arrows(False)).find("arrow 1").fill == "fresh"


@pytest.mark.parametrize("block", range(2))
def test_no_name_lies_on_an_arrow_or_an_axis(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        size = [(400, 260), (280, 220), (800, 420)][seed % 3]
        scene = random_arrows(random.Random(seed))
        drawing = draw(scene, *size)
        left, bottom = 0.0, float(size[1])  # the contours have a frame of their own
        if scene.contours is None:
            left, bottom = points(drawing, "axes")[0][0], points(drawing, "axes")[1][1]
        paths = [m.id for m in drawing.marks if isinstance(m, Path) and m.id.startswith(("sum", "arrow "))]
        along = np.linspace(0, 1, 200)[:, None, None]
        for name in (mark for mark in drawing.marks if mark.id.startswith("arrow name")):
            box = text_box(name.text, name.x, name.y, name.anchor, name.size)
            assert box.left > left
            assert box.bottom < bottom
            for corners in (points(drawing, path) for path in paths):
                edge = (corners + along * (np.roll(corners, -1, axis=0) - corners)).reshape(-1, 2)
                inside = (edge > [box.left, box.top]) & (edge < [box.right, box.bottom])
                assert not inside.all(axis=1).any(), f"{name.text} lies on an arrow"


def test_the_gradient_is_told_in_words_with_the_shares() -> None:
    assert draw(plane()).words == (
        "|grad| 4 holds batches 1\u201342. batch 42: 50% of the sum; batch 41: \u221275% of the sum, already applied; "
        "batches 1\u201340: 125% of the sum, already applied."
    )
    empty = draw(Arrows([], (0, 0)), 400, 260)
    assert empty.words == ".grad holds no batch."
    assert "no arrow: .grad is None or 0" in empty.texts()
    assert "no arrow: .grad is None or 0" not in draw(plane(), 400, 260).texts()
    assert "was not measured" in draw(Arrows([], (3, 0), [(1, 4)], measured=False)).words


def test_the_slice_reads_the_loss_where_the_step_lands() -> None:
    t = np.linspace(-0.1, 0.3, 21)
    loss = (t - 0.2) ** 2 + 1
    drawing = draw(Slice(t.tolist(), loss.tolist(), 0.1))
    readout = drawing.find("loss").readout
    for id, at in (("now", 0.0), ("there", 0.1)):
        ((x, y),) = points(drawing, id)
        assert readout.x.value(x) == pytest.approx(at)
        assert readout.y.value(y) == pytest.approx(np.interp(at, t, loss))
    assert {"now 1.04", "lr 0.1: 1.01"} <= set(drawing.texts())
