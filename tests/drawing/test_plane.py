"""The panels over two weights: contours against matplotlib's own, arrows head to tail, the path that fades."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from made_scenes import BOWL, X, Y, _arrows, arrows, plane
from matplotlib.figure import Figure

from gradlab.drawing import Dots, Drawing, Path, draw
from gradlab.drawing.gradient import arrow_outline, fit_factor, plane_axes
from gradlab.drawing.labels import text_box
from gradlab.drawing.landscape import AGES, surface_of, thin
from gradlab.scenes import Arrow, Arrows, Contours, Landscape


def reader(scene: Landscape, *size: int) -> tuple[Drawing, np.ndarray, np.ndarray]:
    """The drawing with start and step of both axes."""
    drawing = draw(scene, *size)
    drag = drawing.find("now").drag
    return drawing, np.array([drag.x.start, drag.y.start]), np.array([drag.x.per_pixel, drag.y.per_pixel])


def test_contours_are_matplotlibs() -> None:
    surface = surface_of(BOWL)
    axes = Figure().add_subplot()
    loss = np.array(BOWL.loss)
    theirs = axes.contour(X, Y, loss, levels=[level for level, _ in surface.levels])
    assert len(surface.levels) == 9
    for (_, points), segments in zip(surface.levels, theirs.allsegs, strict=True):
        mine = points[np.isfinite(points).all(axis=1)]
        assert sorted(map(tuple, mine.round(9))) == sorted(tuple(point) for part in segments for point in part.round(9))
    assert surface.lowest == (0.0, 0.0)
    assert surface_of(BOWL) is surface


@pytest.mark.parametrize("size", [(260, 200), (400, 260), (900, 380)])
def test_marks_lie_where_the_weights_are(size: tuple[int, int]) -> None:
    path = [(-2.0, 1.0), (-1.0, 0.4), (0.3, -0.2)]
    drawing, start, step = reader(Landscape(BOWL, path), *size)
    assert start + step * np.array(drawing.find("now").points) == pytest.approx(path[-1])
    assert start + step * np.array(drawing.find("start").points) == pytest.approx(path[0])
    for number, (level, _) in enumerate(surface_of(BOWL).levels):
        points = drawing.find(f"contour {number}").points.reshape(-1, 2)
        x, y = (start + step * points[np.isfinite(points).all(axis=1)]).T
        assert x**2 + 4 * y**2 == pytest.approx(level, abs=0.15)  # to the resolution of the grid


def test_a_unit_is_as_long_along_both_weights() -> None:
    for size in [(400, 260), (900, 380), (300, 420)]:
        _, _, step = reader(Landscape(BOWL, [(0.0, 1.0)]), *size)
        assert abs(step[0]) == pytest.approx(abs(step[1]), rel=0.02)


def test_what_stands_for_a_thing_moves_and_the_rest_is_painted_at_once() -> None:
    arrow = Arrow((4, 4), 1.0, 0.5, 1.0, applied=True)
    scene = Arrows([arrow], (1.0, 0.5), [(4, 4)], BOWL, (0.5, 0.5))
    marks = [*draw(scene).marks, *draw(Landscape(BOWL, [(0.0, 1.0)])).marks]
    assert {mark.id for mark in marks if getattr(mark, "moves", False)} == {"sum", "arrow 0", "weights", "now"}
    assert [mark.done for mark in marks if mark.id in ("sum", "arrow 0")] == ["", "applied"]


def test_the_path_fades_in_thirds_and_is_whole() -> None:
    path = [(2 * math.cos(at / 20), math.sin(at / 20)) for at in range(120)]
    drawing, start, step = reader(Landscape(BOWL, path))
    parts = [drawing.find(f"path {number}") for number in range(3)]
    assert [part.stroke for part in parts] == list(AGES) == ["weights/20", "weights/45", "weights"]
    ends = [start + step * np.asarray(part.points).reshape(-1, 2) for part in parts]
    assert ends[0][-1] == pytest.approx(ends[1][0])
    assert ends[1][-1] == pytest.approx(ends[2][0])
    assert np.concatenate([ends[0], ends[1][1:], ends[2][1:]]) == pytest.approx(np.array(path))
    assert all(abs(len(part) - 40) < 8 for part in ends)


def test_points_on_one_spot_are_sent_once() -> None:
    places = np.array([[1.0, 1.0], [1.01, 1.0], [1.5, 1.0], [1.5, 1.02], [1.0, 1.0]])
    assert thin(places).tolist() == [[1.0, 1.0], [1.5, 1.0], [1.0, 1.0]]


def test_the_weights_can_be_dragged() -> None:
    drawing, _, _ = reader(Landscape(BOWL, [(1.0, 1.0)]))
    now = drawing.find("now")
    assert (now.drag.name, now.words) == ("weights", "drag to another start")
    assert "weights" in drawing.words


def test_weights_far_outside_are_said() -> None:
    drawing = draw(Landscape(BOWL, [(0.0, 0.0), (1e6, 2.0)]))
    assert "weights at 1e6, 2" in drawing.texts()
    assert not any("outside" in text for text in draw(Landscape(BOWL, [(0.0, 0.0), (3.5, 2.0)])).texts())


def tip_and_tail(mark: Path) -> tuple[np.ndarray, np.ndarray]:
    corners = np.asarray(mark.points, dtype=float).reshape(7, 2)
    return corners[3], (corners[0] + corners[6]) / 2


def test_arrows_lie_head_to_tail_and_end_at_the_sum() -> None:
    scene = arrows(True)
    drawing = draw(scene)
    start = np.asarray(drawing.find("weights").points)
    older, one, two, total = (tip_and_tail(drawing.find(id)) for id in ("arrow 0", "arrow 1", "arrow 2", "sum"))
    assert older[1] == pytest.approx(start)
    assert one[1] == pytest.approx(older[0])
    assert two[1] == pytest.approx(one[0])
    assert total[0] == pytest.approx(two[0])  # the three add up to what .grad holds
    along = (two[0] - two[1]) * [1, -1]
    assert along / np.hypot(*along) == pytest.approx(np.array([-2, 1]) / math.sqrt(5), abs=0.02)


def test_stale_and_fresh_arrows_are_told_apart_and_pressed() -> None:
    drawing = draw(arrows(True))
    stale, fresh = drawing.find("arrow 1"), drawing.find("arrow 2")
    assert (stale.fill, stale.hatch, stale.dash, stale.press) == ("stale", "//", "dashed", "batch 3")
    assert (fresh.fill, fresh.hatch, fresh.dash, fresh.press) == ("fresh", "", "", "batch 4")
    assert stale.words == "batch 3: 40% of the sum, already applied"
    assert drawing.find("arrow 0").press == ""
    assert draw(arrows(False)).find("arrow 1").fill == "fresh"


@pytest.mark.parametrize("size", [(260, 200), (400, 260), (900, 380)])
@pytest.mark.parametrize("scale", [1e-9, 0.3, 1.0, 7e12])
def test_arrows_of_a_larger_model_lie_in_a_plane_head_to_tail(size: tuple[int, int], scale: float) -> None:
    scene = plane(scale)
    drawing = draw(scene, *size)
    ends = [tip_and_tail(drawing.find(f"arrow {at}")) for at in range(3)]
    total = tip_and_tail(drawing.find("sum"))
    assert ends[0][1] == pytest.approx(total[1])
    assert ends[1][1] == pytest.approx(ends[0][0])
    assert ends[2][1] == pytest.approx(ends[1][0])
    assert ends[2][0] == pytest.approx(total[0])
    per_unit = (total[0] - total[1])[0] / scene.total[0]
    for arrow, (tip, tail) in zip(scene.arrows, ends, strict=True):
        assert tip - tail == pytest.approx(np.array([arrow.x, -arrow.y]) * per_unit, abs=1e-6)
    axes = plane_axes(*size, np.array([[5.0, -1.0], [2.0, -3.0], [4.0, 0.0]]) * scale)
    assert axes.left <= min(tip[0] for tip, _ in ends) <= max(tip[0] for tip, _ in ends) <= axes.right
    assert axes.top <= min(tip[1] for tip, _ in ends) <= max(tip[1] for tip, _ in ends) <= axes.bottom
    if size[0] >= 900:
        assert {"1\u201340: 125%", "41: \u221275%", "42: 50%"} <= set(drawing.texts())


@pytest.mark.parametrize("seed", range(40))
def test_no_name_lies_on_an_arrow_or_an_axis(seed: int) -> None:
    size = [(400, 260), (280, 220), (800, 420)][seed % 3]
    scene = _arrows(random.Random(seed))
    drawing = draw(scene, *size)
    if scene.contours is not None:
        left, bottom = 0.0, float(size[1])  # the contours have a frame of their own
    else:
        axes = np.asarray(drawing.find("axes").points).reshape(-1, 2)
        left, bottom = axes[0][0], axes[1][1]
    paths = [mark for mark in drawing.marks if isinstance(mark, Path) and mark.id.startswith(("sum", "arrow "))]
    edges = [np.asarray(mark.points).reshape(-1, 2) for mark in paths]
    names = [m for m in drawing.marks if m.id.startswith("arrow name")]
    for name in names:
        box = text_box(name.text, name.x, name.y, name.anchor, name.size)
        assert box.left > left
        assert box.bottom < bottom
        for corners in edges:
            ends = np.roll(corners, -1, axis=0)
            along = np.linspace(0, 1, 200)[:, None, None]
            points = (corners + along * (ends - corners)).reshape(-1, 2)
            inside = (points > [box.left, box.top]) & (points < [box.right, box.bottom])
            assert not inside.all(axis=1).any(), f"{name.text} lies on an arrow"


def test_the_plane_is_told_in_words_with_the_shares() -> None:
    assert draw(plane()).words == (
        "|grad| 4 holds batches 1\u201342. batch 42: 50% of the sum; batch 41: \u221275% of the sum, already applied; "
        "batches 1\u201340: 125% of the sum, already applied."
    )
    assert draw(Arrows([], (0, 0))).words == ".grad holds no batch."
    assert "was not measured" in draw(Arrows([], (3, 0), [(1, 4)], measured=False)).words


def test_the_plane_moves_rarely() -> None:
    seen = {plane_axes(400, 260, np.array([[length, 0.0]])).x for length in np.linspace(1, 10, 200)}
    assert len(seen) < 12


def test_the_factor_is_round_and_lets_the_arrows_fit() -> None:
    for size in np.geomspace(1e-8, 1e8, 60):
        scene = Arrows([Arrow((1, 1), size, 0, 1.0)], (size, 0), [(1, 1)], BOWL)
        factor = fit_factor(scene, np.array([[0.0, 0.0], [size, 0.0]]))
        assert float(f"{factor:.1e}") == pytest.approx(factor)
        assert factor * size <= 0.6 * 6 * (1 + 1e-9)
        assert factor * size > 0.05 * 6


def test_an_arrow_without_length_is_none() -> None:
    assert len(arrow_outline(np.zeros(2), np.zeros(2), 6)) == 0
    drawing = draw(Arrows([Arrow((1, 1), 0, 0, 1.0)], (0, 0), [(1, 1)], Contours([0, 1], [0, 1], [[2, 2], [2, 2]])))
    assert not any(mark.id.startswith("arrow") for mark in drawing.marks)
    assert isinstance(drawing.find("weights"), Dots)


def test_an_empty_gradient_is_told_in_words() -> None:
    said = "no arrow: .grad is None or 0"
    assert said in draw(Arrows([], (0.0, 0.0)), 400, 260).texts()
    assert said not in draw(plane(), 400, 260).texts()
