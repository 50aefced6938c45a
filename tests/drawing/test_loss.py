"""The loss panel against the numbers that it was given, read off the marks."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from labels_apart import check_labels, corners, overlap
from made_scenes import curve

from gradlab.drawing import Drawing, draw
from gradlab.drawing.loss import by_column
from gradlab.formatting import short
from gradlab.scenes import Curve, UnswitchedCurve


def points(drawing: Drawing, id: str, each: int = 2) -> np.ndarray:
    return np.asarray(drawing.find(id).points, dtype=float).reshape(-1, each)


def values(drawing: Drawing, id: str = "loss") -> tuple[np.ndarray, np.ndarray]:
    """Updates and losses of a curve, as its readout says that places are read."""
    readout = (drawing.find(id) if id == "without" else drawing.find("loss")).readout
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
    mean = [10.0 ** (-at) for at in range(6)]  # on a logarithmic axis
    x, y = values(draw(Curve([1, 2, 3, 4, 5, 6], mean, mean, mean), *size))
    assert x == pytest.approx([1, 2, 3, 4, 5, 6])
    assert y == pytest.approx(mean)


def test_words_say_the_numbers_of_the_newest_update() -> None:
    scene = dataclasses.replace(curve(60, switches=((20, "zero_grad off"),)), now=0.123456)  # not a bucket's mean
    drawing = draw(scene)
    _, (loss,) = values(drawing, "now")
    assert loss == pytest.approx(0.123456)
    assert "now 0.123" in drawing.texts()
    for said in ("0.123", short(min(scene.low)), short(max(scene.high)), "zero_grad off"):
        assert said in drawing.words
    assert draw(Curve([], [], [], [])).words == "No update has been made yet."


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


def test_a_broken_curve_ends_and_says_so() -> None:
    drawing = draw(curve(50, broken=30))
    x, _ = values(drawing)
    assert x.max() == pytest.approx(30)
    assert "inf or NaN from update 30" in drawing.texts()
    assert not any(text.startswith("now") for text in drawing.texts())
    assert "inf or NaN from update 30" in drawing.words


def test_switches_are_marked_and_the_newest_are_named() -> None:
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
    losses = [2.0 + 0.01 * math.sin(at) for at in range(60)]  # far above zero they wobble by a hundredth
    drawings = [draw(Curve(range(1, 61), losses, losses, losses), zoom=zoom) for zoom in (None, (20, 40))]
    shares = [np.ptp(points(each, "loss")[:, 1]) / np.ptp(points(each, "zoom")[:, 1]) for each in drawings]
    assert shares[0] < 0.02 < 0.5 < shares[1], "the losses are fitted, too"


def beside(count: int, at: int, loss: float = 0.2) -> Curve:
    """A run that was switched ``at`` an update and swings since, and its loss without the switch."""
    scene = curve(count, switches=((at, "zero_grad off"),))
    grows = [max(x - at, 0) / 20 * (1 + math.sin(x)) for x in scene.updates]
    swing = [y + more for y, more in zip(scene.mean, grows, strict=True)]
    updates = list(range(at + 1, count + 1))
    mean = [loss * (1 + 0.1 * math.sin(x)) for x in updates]
    without = UnswitchedCurve(updates, mean, "zero_grad on", mean[-1])
    return dataclasses.replace(scene, mean=swing, low=swing, high=swing, now=swing[-1], unswitched=without)


@pytest.mark.parametrize("size", [(260, 200), (400, 260), (1300, 420)])
def test_the_loss_without_the_switch_lies_where_its_readout_says(size: tuple[int, int]) -> None:
    scene = beside(90, 40)
    drawing = draw(scene, *size)
    x, y = values(drawing, "without")
    assert x == pytest.approx(scene.unswitched.updates)  # type: ignore[union-attr]
    assert y == pytest.approx(scene.unswitched.mean)  # type: ignore[union-attr]
    mark = drawing.find("without")
    assert mark.readout.words == "about update {x}: {y} without the switch"
    assert mark.dash  # a second cue beside its colour
    assert mark.width < drawing.find("loss").width
    assert "Without the switch (zero_grad on) the loss would be 0.218 now." in drawing.words
    _, y = values(draw(beside(90, 40, loss=30.0), *size), "without")
    assert y.max() == pytest.approx(33, rel=0.01)  # it stays within the axes


@pytest.mark.parametrize("size", [(260, 200), (400, 260), (1300, 420)])
@pytest.mark.parametrize(("loss", "count"), [*zip([0.02, 0.4, 3.0, 40.0] * 3, [43, 50, 60, 90, 200] * 2, strict=False)])
def test_its_name_covers_neither_labels_nor_the_loss(size: tuple[int, int], loss: float, count: int) -> None:
    drawing = draw(beside(count, 40, loss), *size)
    check_labels(drawing)
    name = drawing.find("without name")
    assert name.text.removeprefix("- - ") in ("without the switch (zero_grad on)", "without the switch", "zero_grad on")
    box, size_of_a_point = corners(name), np.array([[0, 0], [0.2, 0], [0.2, 0.2], [0, 0.2]])
    for one, other in itertools.pairwise(points(drawing, "loss")):
        assert not any(overlap(box, point + size_of_a_point) for point in np.linspace(one, other, 9))


def test_its_name_rests_while_the_curve_grows() -> None:
    places = [draw(beside(count, 40), 500, 300).find("without name") for count in range(60, 160)]
    assert sum(one != other for one, other in itertools.pairwise(places)) < 20
    assert draw(beside(1000, 40), 260, 200).find("without name").backed


def test_it_says_where_it_ends_and_why() -> None:
    scene = dataclasses.replace(beside(90, 40), broken=60)
    x, _ = values(draw(scene, 640, 300), "without")
    assert x.max() == pytest.approx(90)
    x, _ = values(draw(beside(90, 40), 640, 300, zoom=(50, 60)), "without")
    assert x == pytest.approx(np.arange(50, 61))
    assert "without" not in [mark.id for mark in draw(beside(90, 40), zoom=(10, 30)).marks]
    ended = UnswitchedCurve([41, 42, 43], [0.2] * 3, "zero_grad on", 0.2, "it took long")
    drawing = draw(dataclasses.replace(scene, unswitched=ended), 640, 300)
    assert drawing.find("without name").text.endswith(", until update 43")
    assert "the loss was 0.2 at update 43; it took long." in drawing.words
    assert drawing.find("without name").words.endswith("without the switch (zero_grad on) in a copy; it took long.")
