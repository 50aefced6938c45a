"""The slice, the loss scale, the classifier's plane, the digits, a comparison and a message."""

from __future__ import annotations

import numpy as np
import pytest
from made_scenes import DIGITS, USUAL, boundary, curve

from gradlab.drawing import Drawing, draw, draw_comparison, draw_message
from gradlab.drawing.predictions import grid
from gradlab.scenes import Curve, Fit, Samples, ScalerHistory, Scene, Slice


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


def test_the_scale_is_read_in_its_own_numbers() -> None:
    drawing = draw(ScalerHistory([1.0, 2.0, 3.0], [65536.0, 32768.0, 32768.0], [], [0.0, 0.0, 0.0]))
    mark = drawing.find("scale")
    read = [mark.readout.y.value(y) for _, y in np.reshape(mark.points, (-1, 2))]
    assert read == pytest.approx([65536, 65536, 32768, 32768])


def test_the_scale_steps_down_where_it_does() -> None:
    drawing = draw(ScalerHistory([1, 2, 3, 4], [65536, 32768, 32768, 16384], [1, 3], [0, 0.5, 0.25, 1]))
    steps = points(drawing, "scale")
    assert len(set(steps[:, 1].round(3))) == 3
    assert (np.diff(steps, axis=0) == 0).any(axis=1).all()  # every piece is level or upright
    assert len(points(drawing, "skipped")) == 2
    readout = drawing.find("underflow").readout
    shares = [readout.y.value(y) for _, y in points(drawing, "underflow")]
    assert shares == pytest.approx([0, 0.5, 0.25, 1])
    assert any("2 steps skipped" in text for text in drawing.texts())
    assert "16,384" in drawing.words


def test_regions_are_cells_and_points_lie_on_theirs() -> None:
    scene = boundary(2)
    drawing = draw(scene)
    image = drawing.find("regions")
    cells = np.asarray(image.cells).reshape(-1, image.columns)
    assert cells.shape == (9, 9)
    for row in range(9):
        for column in range(9):
            role, _, strength = image.palette[cells[row, column]].partition("/")
            wanted = scene.label[8 - row][column]  # rows of an image begin at the top
            assert role == f"class{wanted}"
            shades = (10, 17, 24, 31, 38, 44, 50)
            assert int(strength) == shades[min(int(scene.confidence[8 - row][column] * 7), 6)]
    ((x, y),) = points(drawing, "class 2")
    assert (x - image.x) / image.width == pytest.approx((0.5 + 1.125) / 2.25)
    assert (y - image.y) / image.height == pytest.approx((1.125 - 0.5) / 2.25)
    assert drawing.find("class 0").shape != drawing.find("class 1").shape


def test_digits_are_shown_with_their_answers_and_wrong_ones_crossed() -> None:
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
        columns, rows, side = grid(count, wide, tall)
        assert columns * rows >= count
        assert columns * (side + 8) <= wide + 1e-6
        assert rows * (side + 19) <= tall + 1e-6


def test_a_comparison_names_every_curve_and_dashes_it() -> None:
    curves = {"a": curve(90), "b": curve(80), "none": Curve([], [], [], []), "bad": curve(50, broken=9)}
    drawing = draw_comparison(curves, "two loops")
    looks = [(drawing.find(f"curve {at}").stroke, drawing.find(f"curve {at}").dash) for at in range(4)]
    assert len(set(looks)) == 4
    texts = drawing.texts()
    assert "bad: inf at 9" in texts
    assert any(text.startswith("a ") for text in texts)
    assert any(text.startswith("none") for text in texts)
    readout = drawing.find("curve 0").readout
    losses = [readout.y.value(y) for _, y in points(drawing, "curve 0")]
    assert losses == pytest.approx(curves["a"].mean)
    assert draw_comparison({}, "nothing").words


def test_a_message_says_all_of_it() -> None:
    said = "there is no memory left for this picture, so it stays as it was until there is some"
    assert " ".join(draw_message(said, width=260).texts()) == said
    assert draw(Fit([], [])).words == "Nothing is forecast yet."
