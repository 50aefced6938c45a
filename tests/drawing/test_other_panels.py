"""The loss scale, the digits and a comparison; and that every scene has a panel."""

from __future__ import annotations

import numpy as np
import pytest
from made_scenes import DEGENERATE, DIGITS, USUAL, curve

from gradlab.drawing import Drawing, draw, draw_comparison
from gradlab.scenes import Curve, Samples, ScalerHistory, Scene


def points(drawing: Drawing, id: str) -> np.ndarray:
    return np.asarray(drawing.find(id).points, dtype=float).reshape(-1, 2)


def test_every_scene_has_a_panel() -> None:
    for kind in Scene.__args__:  # type: ignore[attr-defined]
        some = [scene for scene in [*USUAL, *DEGENERATE] if type(scene) is kind]
        assert some
        for drawing in map(draw, some):
            assert drawing.words
            assert drawing.title
            assert len({mark.id for mark in drawing.marks}) == len(drawing.marks)
    with pytest.raises(TypeError, match=r"Curve.*got int"):
        draw(5)  # type: ignore[arg-type]


def test_the_scale_is_read_in_its_own_numbers() -> None:
    drawing = draw(ScalerHistory([1, 2, 3, 4], [65536, 32768, 32768, 16384], [1, 3], [0, 0.5, 0.25, 1]))
    steps = points(drawing, "scale")
    assert steps[:, 1].tolist() == [16, 16, 15, 15, 14, 14], "powers of 2"
    assert (np.diff(steps, axis=0) == 0).any(axis=1).all()  # every piece is level or upright
    assert len(points(drawing, "skipped")) == 2
    assert points(drawing, "underflow")[:, 1].tolist() == [0, 0.5, 0.25, 1]
    assert drawing.find("underflow").axes == 1
    assert any("2 steps skipped" in text for text in drawing.texts())
    assert "16,384" in drawing.words


def test_digits_have_their_answers_and_wrong_ones_a_cross() -> None:
    drawing = draw(Samples(DIGITS, [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 7], 0.8))
    for i in range(6):
        image = drawing.find(f"digit {i}")
        shades = [int(role.partition("/")[2]) / 80 for role in image.palette]
        assert [shades[cell] for cell in image.cells] == pytest.approx(np.ravel(DIGITS[i]), abs=0.04)
    assert [mark.id for mark in drawing.marks if mark.id.startswith("cross")] == ["cross 5"]
    assert "6, is 7" in drawing.texts()
    assert "6 for 7" in drawing.words


def test_digits_stand_in_a_grid_with_their_answers_below() -> None:
    drawing = draw(Samples(DIGITS * 2, [1] * 12, [1] * 12, 1.0))
    x, y = drawing.axes[0].x, drawing.axes[0].y
    corners = [drawing.find(f"digit {i}").points for i in range(12)]
    assert len({left for left, *_ in corners}) == 6
    assert len({top for _, top, *_ in corners}) == 2
    assert drawing.axes[0].equal == "fit"
    for i, (left, top, right, bottom) in enumerate(corners):
        answer = drawing.find(f"answer {i}")
        assert x.low <= left < answer.x < right <= x.high
        assert y.low <= answer.y < bottom < top <= y.high
        assert right - left == pytest.approx(top - bottom)


def test_a_comparison_names_every_curve_and_dashes_it() -> None:
    curves = {"a": curve(90), "b": curve(80), "none": Curve([], [], [], []), "bad": curve(50, broken=9)}
    drawing = draw_comparison(curves, "two loops")
    assert len({(drawing.find(f"curve {i}").stroke, drawing.find(f"curve {i}").dash) for i in range(4)}) == 4
    assert "bad: inf at 9" in drawing.texts()
    assert {"a", "none"} <= {text.split()[0] for text in drawing.texts()}
    assert points(drawing, "curve 0")[:, 1].tolist() == curves["a"].mean
    assert draw_comparison({}, "nothing").words


def test_a_run_that_diverges_leaves_the_picture() -> None:
    losses = {"tame": [1.0, 0.8, 0.6, 0.5], "wild": [1.0, 2.0, 8.0, 64.0]}
    curves = {name: Curve([1, 2, 3, 4], y, y, y, broken=5 if name == "wild" else None) for name, y in losses.items()}
    drawing = draw_comparison(curves)
    assert points(drawing, "curve 1")[:, 1].tolist() == [1, 2, 8, 64]
    assert 1 <= drawing.axes[0].y.high < 8
