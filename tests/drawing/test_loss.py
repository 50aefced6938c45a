"""The loss panel against the numbers that it was given, read off the marks."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from made_scenes import curve

from gradlab.drawing import Drawing, draw
from gradlab.drawing.axes import make_axes
from gradlab.drawing.loss import by_column
from gradlab.formatting import short
from gradlab.scenes import Curve


def points(drawing: Drawing, id: str, each: int = 2) -> np.ndarray:
    return np.asarray(drawing.find(id).points, dtype=float).reshape(-1, each)


def values(drawing: Drawing, id: str = "loss") -> tuple[np.ndarray, np.ndarray]:
    """Updates and losses of a curve, as its readout says that places are read."""
    readout = drawing.find("loss").readout
    x, y = points(drawing, id).T
    return np.array([readout.x.value(at) for at in x]), np.array([readout.y.value(at) for at in y])


@pytest.mark.parametrize("size", [(260, 200), (400, 260), (1300, 420)])
def test_each_update_lies_where_its_readout_says(size: tuple[int, int]) -> None:
    scene = curve(60)
    drawing = draw(scene, *size)
    x, y = values(drawing)
    assert x == pytest.approx(scene.updates)
    assert y == pytest.approx(scene.mean)
    band = points(drawing, "spread", 3)
    assert np.array_equal(band[:, 0], points(drawing, "loss")[:, 0])
    readout = drawing.find("loss").readout
    assert [readout.y.value(at) for at in band[:, 1]] == pytest.approx(scene.low)
    assert [readout.y.value(at) for at in band[:, 2]] == pytest.approx(scene.high)


def test_a_logarithmic_axis_reads_right_too() -> None:
    mean = [10.0 ** (-at) for at in range(6)]
    x, y = values(draw(Curve([1, 2, 3, 4, 5, 6], mean, mean, mean)))
    assert x == pytest.approx([1, 2, 3, 4, 5, 6])
    assert y == pytest.approx(mean)


def test_now_is_the_loss_of_the_newest_update() -> None:
    scene = dataclasses.replace(curve(60), now=0.123456)  # not the mean of the newest bucket
    drawing = draw(scene)
    assert "now 0.123" in drawing.texts()
    _, (loss,) = values(drawing, "now")
    assert loss == pytest.approx(0.123456)
    assert "0.123" in drawing.words


def test_there_is_at_most_a_point_for_each_column() -> None:
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(50, 380, 1024))
    mean = rng.random(1024)
    low, high = mean - rng.random(1024), mean + rng.random(1024)
    found = by_column(x, mean, low, high)
    columns = sorted({math.floor(at) for at in x})
    assert len(found) == len(columns)
    for row, column in zip(found, columns, strict=True):
        mine = np.floor(x) == column
        assert row == pytest.approx([x[mine].mean(), mean[mine].mean(), low[mine].min(), high[mine].max()])


def test_columns_before_the_newest_stay_exactly() -> None:
    whole = curve(1020)
    before, axes = np.zeros((0, 3)), None
    for count in range(810, 1000):
        scene = Curve(*(part[:count] for part in (whole.updates, whole.mean, whole.low, whole.high)), now=0.5)
        now = points(draw(scene), "spread", 3)
        if draw(scene).marks[1] is axes:
            assert np.array_equal(now[: len(before) - 1], before[:-1])
        before, axes = now, draw(scene).marks[1]


def test_a_broken_curve_ends_and_says_so() -> None:
    drawing = draw(curve(50, broken=30))
    x, _ = values(drawing)
    assert x.max() == pytest.approx(30)
    assert "inf or NaN from update 30" in drawing.texts()
    assert not any(text.startswith("now") for text in drawing.texts())
    assert "inf or NaN from update 30" in drawing.words


def test_switches_are_marked_at_their_update_and_the_newest_are_named() -> None:
    turned = tuple((5 * at, f"lr {at}") for at in range(1, 10))
    drawing = draw(curve(60, switches=turned), 900, 300)
    readout = drawing.find("loss").readout
    for number, (update, words) in enumerate(turned):
        mark = drawing.find(f"switch {number}")
        assert readout.x.value(mark.points[0]) == pytest.approx(update)
        assert mark.dash == "dashed"
        assert mark.words == f"update {update}: {words}"
    named = [text for text in drawing.texts() if text.startswith("lr")]
    assert sorted(named) == [f"lr {at}" for at in range(4, 10)]


def test_zoom_shows_these_updates_only() -> None:
    drawing = draw(curve(60), zoom=(20, 30))
    x, y = values(drawing)
    assert x == pytest.approx(np.arange(20, 31))
    assert y == pytest.approx(curve(60).mean[19:30])
    area = drawing.find("zoom")
    left, right = min(area.points[::2]), max(area.points[::2])
    assert (area.drag.name, area.stroke, area.fill) == ("zoom", "", "")
    assert [area.drag.x.value(at) for at in (left, right)] == pytest.approx([20, 30])
    ticks = [int(mark.text) for mark in drawing.marks if mark.id.startswith("axes x") and mark.id != "axes x"]
    assert len(ticks) >= 3
    assert all(20 <= tick <= 30 for tick in ticks)
    assert values(draw(curve(60), zoom=None))[0] == pytest.approx(np.arange(1, 61))


def test_zoom_fits_the_losses_too() -> None:
    """A loss that wobbles by a hundredth far above zero fills most of the panel once it is zoomed in on."""
    losses = [2.0 + 0.01 * math.sin(at) for at in range(60)]
    scene = Curve(range(1, 61), losses, losses, losses)

    def share(zoom: tuple[float, float] | None) -> float:
        drawing = draw(scene, zoom=zoom)
        area, curve_ = (np.reshape(drawing.find(name).points, (-1, 2))[:, 1] for name in ("zoom", "loss"))
        return float(np.ptp(curve_) / np.ptp(area))

    assert share(None) < 0.02
    assert share((20, 40)) > 0.5


def test_axes_are_the_same_objects_while_they_stay() -> None:
    one, other = draw(curve(51)), draw(curve(58))
    shared = {id(mark) for mark in one.marks} & {id(mark) for mark in other.marks}
    assert {mark.id for mark in one.marks if id(mark) in shared} >= {"title", "axes", "axes x0", "axes y0", "zoom"}
    assert make_axes.cache_info().hits > 0


def test_words_say_the_numbers() -> None:
    scene = curve(60, switches=((20, "zero_grad off"),))
    words = draw(scene).words
    for said in (scene.now, min(scene.low), max(scene.high)):
        assert short(said) in words
    assert "zero_grad off" in words
    assert draw(Curve([], [], [], [])).words == "No update has been made yet."
