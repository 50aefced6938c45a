"""Pictures of a notebook's own numbers: marks and texts show these numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gradlab import Recipe, compare
from gradlab.course import bowl_steps, curves, head_to_tail
from gradlab.drawing import Drawing, draw_comparison
from gradlab.formatting import short

EIGHT = torch.tensor([[1.0, 0.0]] * 4 + [[0.0, 1.0]] * 4)


def ends(drawing: Drawing) -> list[str]:
    return [text for text in drawing.texts() if text.startswith(("cleared", "forgot"))]


def test_each_line_ends_where_its_numbers_end_and_has_its_role() -> None:
    drawing = curves({"cleared": [4.0, 2.0, 1.0], "forgot": [4.0, 1.0, 3.0]}, "loss", reused=["forgot"]).drawings[0]
    assert ends(drawing) == ["cleared 1", "forgot 3"]
    cleared, forgot = drawing.find("curve 0"), drawing.find("curve 1")
    assert (cleared.stroke, forgot.stroke) == ("loss", "reused")
    assert list(forgot.points) == [0, 4, 1, 1, 2, 3], "the first number stands at update 0"
    assert forgot.dash, "a second cue beside the colour"
    assert list(curves({"length of a step": [4.0, 2.0]}, first=1).drawings[0].find("curve 0").points[::2]) == [1, 2]


def test_the_axis_says_what_is_counted() -> None:
    for unit in ("updates", "epochs"):
        assert curves({"a": [4.0, 2.0]}, counted=unit).drawings[0].axes[0].x.words == unit


def test_means_and_what_breaks() -> None:
    assert ends(curves({"cleared": [1.0, 2.0, 3.0, 6.0]}, mean_of=2).drawings[0]) == ["cleared 4.5"]
    assert ends(curves({"cleared": [1.0, 2.0, math.nan, 1.0]}).drawings[0]) == ["cleared: inf at 2"]
    for first in ([], [1.0]):  # not enough finite numbers for a mean
        drawing = curves({"cleared": [*first, math.nan, 1.0], "forgot": [1.0, 2.0, 3.0]}, mean_of=2).drawings[0]
        assert ends(drawing) == [f"cleared: inf at {len(first)}", "forgot 2.5"]


def test_bad_input_is_named() -> None:
    for lines, more, message in (
        ({}, {}, "a dict of one or more names and lists of at least 1 number, "),
        ({"a": []}, {}, "lists of at least 1 number, "),
        ({"a": [1.0]}, {"mean_of": 2}, "lists of at least 2 numbers, "),
        ({"a": [1.0]}, {"reused": ["b"]}, "reused must be among a, got b"),
    ):
        with pytest.raises(ValueError, match=message):
            curves(lines, **more)


def test_compare_writes_the_same_loss_in_picture_and_table() -> None:
    result = compare("line", {"cleared": Recipe(lr=0.005), "forgot": Recipe(lr=0.005, zero_grad=False)}, updates=77)
    drawn = ends(draw_comparison(result.curves))
    assert sorted(drawn) == sorted(f"{row.label} {short(row.last)}" for row in result.rows)


def test_an_event_stands_at_its_update_with_its_words() -> None:
    drawing = curves({"None": [1.0, 0.5, 0.4], "zeros": [1.0, 0.5, 0.2]}, events={1: "last gradient"}).drawings[0]
    assert set(drawing.find("event 1").points[::2]) == {1}
    assert drawing.find("event 1 word").texts == ("last gradient",)


# Gradients head to tail ----------------------------------------------------------------------------------------------


def tips(drawing: Drawing) -> np.ndarray:
    """Return the tips of the arrows, the oldest first."""
    return np.array([drawing.find(f"arrow {number}").points[2:] for number in range(8)])


def test_steps_lie_head_to_tail_and_keep_their_direction() -> None:
    figure = bowl_steps({"near": {"a": [(-0.8, 1.3), (-0.8, 0.3)], "b": [(-1.6, 1.3)]}, "far": {"a": [(798.4, 401.3)]}})
    near, far = figure.drawings
    tail, head = near.find("step 0 0").points, near.find("step 0 1").points
    assert list(tail) == pytest.approx([-1.6, 1.3, -0.8, 1.3])
    assert list(head) == pytest.approx([-0.8, 1.3, -0.8, 0.3])
    x0, y0, x1, y1 = far.find("step 0 0").points
    assert (x1 - x0) / (y1 - y0) == pytest.approx(2.0)
    assert math.hypot(x1 - x0, y1 - y0) == pytest.approx(8.0)
    order = [mark.id for mark in near.marks]
    assert order.index("step 1 0") < order.index("step 0 0") < order.index("start"), "the first path is in front"
    assert repr(figure).splitlines()[1:] == [
        "near: moved: a (0.8, \u22121); b (0, 0).",
        "far: moved: a (800, 400).",
    ]


def test_the_sum_ends_at_the_last_tip_and_steps_are_counted() -> None:
    for drawing in head_to_tail(EIGHT, {"not cleared": 1.0, "buffer": 0.9}).drawings:
        assert drawing.find("sum").points[2:] == pytest.approx(tips(drawing)[-1])
        assert [drawing.find(f"arrow {number}").fill for number in range(8)] == ["reused"] * 6 + ["fresh", "paper"]


def test_old_arrows_are_as_long_as_was_kept_at_one_scale() -> None:
    whole, faded = (tips(drawing) for drawing in head_to_tail(EIGHT, {"not cleared": 1.0, "buffer": 0.8}).drawings)
    step = whole[-1] - whole[-2]
    assert np.diff(whole[3:], axis=0) == pytest.approx(np.tile(step, (4, 1)))
    assert np.diff(faded[3:], axis=0) == pytest.approx(step * 0.8 ** np.arange(3, -1, -1)[:, None])


def test_both_pictures_have_the_same_axes_that_hold_all() -> None:
    whole, buffer = head_to_tail(EIGHT, {"not cleared": 1.0, "buffer": 0.8}).drawings
    (axes,) = whole.axes
    assert buffer.axes == whole.axes
    assert axes.equal
    assert axes.x.low < 0
    assert axes.x.high > 4 < axes.y.high


def test_its_words_tell_the_length_and_the_share() -> None:
    assert repr(head_to_tail(EIGHT, {"not cleared": 1.0})).splitlines() == [
        "gradients head to tail",
        "not cleared: 8 gradients, a sum of length 5.66, the newest is 18% of it.",
    ]


def test_bad_gradients_are_named() -> None:
    for gradients in (torch.ones(3), torch.ones(0, 2), torch.ones(2, 3), torch.tensor([[torch.nan, 1.0]])):
        with pytest.raises(ValueError, match="rows of two finite numbers, got the shape"):
            head_to_tail(gradients, {"a": 1.0})
    with pytest.raises(ValueError, match="must have at least one name"):
        head_to_tail(EIGHT, {})
