"""The loss scale, the digits, a comparison and a message; and that every scene has a panel."""

from __future__ import annotations

import numpy as np
import pytest
from made_scenes import DIGITS, USUAL, curve

from gradlab.drawing import Drawing, draw, draw_comparison, draw_message
from gradlab.drawing.panels import grid
from gradlab.scenes import Curve, Samples, ScalerHistory, Scene


def points(drawing: Drawing, id: str) -> np.ndarray:
    return np.asarray(drawing.find(id).points, dtype=float).reshape(-1, 2)


def test_every_scene_has_a_panel() -> None:
    for kind in Scene.__args__:  # type: ignore[attr-defined]
        some = [scene for scene in USUAL if type(scene) is kind]
        assert some
        for drawing in map(draw, some):
            assert drawing.words
            assert drawing.title
            assert len({mark.id for mark in drawing.marks}) == len(drawing.marks)
    with pytest.raises(TypeError, match=r"int.*Curve"):
        draw(5)  # type: ignore[arg-type]


def test_the_scale_is_read_in_its_own_numbers() -> None:
    drawing = draw(ScalerHistory([1, 2, 3, 4], [65536, 32768, 32768, 16384], [1, 3], [0, 0.5, 0.25, 1]))
    steps, readout = points(drawing, "scale"), drawing.find("scale").readout
    assert [readout.y.value(y) for y in steps[:, 1]] == pytest.approx([65536, 65536, 32768, 32768, 16384, 16384])
    assert (np.diff(steps, axis=0) == 0).any(axis=1).all()  # every piece is level or upright
    assert len(points(drawing, "skipped")) == 2
    shares = [drawing.find("underflow").readout.y.value(y) for _, y in points(drawing, "underflow")]
    assert shares == pytest.approx([0, 0.5, 0.25, 1])
    assert any("2 steps skipped" in text for text in drawing.texts())
    assert "16,384" in drawing.words


def test_digits_have_their_answers_and_wrong_ones_a_cross() -> None:
    drawing = draw(Samples(DIGITS, [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 7], 0.8))
    for at in range(6):
        image = drawing.find(f"digit {at}")
        shades = [int(role.partition("/")[2]) / 80 for role in image.palette]
        assert [shades[cell] for cell in image.cells] == pytest.approx(np.ravel(DIGITS[at]), abs=0.04)
    assert [mark.id for mark in drawing.marks if mark.id.startswith("cross")] == ["cross 5"]
    assert "6, is 7" in drawing.texts()
    assert "6 for 7" in drawing.words


@pytest.mark.parametrize(("wide", "tall"), [(244, 166), (384, 226), (1284, 386), (1284, 166)])
def test_digits_are_as_large_as_can_be(wide: float, tall: float) -> None:
    for count in range(1, 25):
        columns, side = grid(count, wide, tall)
        fits = [min(wide / n - 8, tall / -(-count // n) - 19) for n in range(1, count + 1)]
        assert side == pytest.approx(max(fits)) == fits[columns - 1]


def test_a_comparison_names_every_curve_and_dashes_it() -> None:
    curves = {"a": curve(90), "b": curve(80), "none": Curve([], [], [], []), "bad": curve(50, broken=9)}
    drawing = draw_comparison(curves, "two loops")
    assert len({(drawing.find(f"curve {at}").stroke, drawing.find(f"curve {at}").dash) for at in range(4)}) == 4
    assert "bad: inf at 9" in drawing.texts()
    assert {"a", "none"} <= {text.split()[0] for text in drawing.texts()}
    readout = drawing.find("curve 0").readout
    losses = [readout.y.value(y) for _, y in points(drawing, "curve 0")]
    assert losses == pytest.approx(curves["a"].mean)
    assert draw_comparison({}, "nothing").words


def test_a_run_that_diverges_leaves_the_picture() -> None:
    losses = {"tame": [1.0, 0.8, 0.6, 0.5], "wild": [1.0, 2.0, 8.0, 64.0]}
    curves = {name: Curve([1, 2, 3, 4], y, y, y, broken=5 if name == "wild" else None) for name, y in losses.items()}
    drawing = draw_comparison(curves)
    readout = drawing.find("curve 1").readout
    assert 2 < readout.y.value(points(drawing, "curve 1")[:, 1].min()) < 4


def test_a_message_says_all_of_it() -> None:
    said = "there is no memory left for this picture, so it stays as it was until there is some"
    assert " ".join(draw_message(said, width=260).texts()) == said
