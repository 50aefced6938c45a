"""Curves hold the numbers of their scene: the loss, the loss without a switch, several losses, the loss scale."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import numpy as np
from made_scenes import curve

from gradlab.drawing import AXES_EDGE, Drawing, Text, draw, draw_comparison
from gradlab.formatting import short
from gradlab.scenes import Curve, ScalerHistory, UnswitchedCurve


def rows(drawing: Drawing, id: str, each: int = 2) -> np.ndarray:
    return np.asarray(drawing.find(id).points, dtype=float).reshape(-1, each)


def test_the_loss_is_that_of_the_scene() -> None:
    scene = dataclasses.replace(curve(60, switches=((20, "zero_grad off"),)), now=0.123456)  # not a bucket's mean
    drawing = draw(scene)
    assert rows(drawing, "loss").tolist() == [*map(list, zip(scene.updates, scene.mean, strict=True))]
    assert rows(drawing, "spread", 3).T.tolist() == [scene.updates, scene.low, scene.high]
    assert rows(drawing, "now").tolist() == [[60, 0.123456]]
    assert "now 0.123" in drawing.texts()
    for part in ("0.123", short(min(scene.low)), short(max(scene.high)), "zero_grad off"):
        assert part in drawing.words
    assert drawing.axes[0].zooms
    assert draw(Curve([], [], [], [])).words == "No update has been made yet."


def test_the_axes_hold_the_curve_and_move_rarely() -> None:
    for scene in (curve(60), curve(7, switches=((30, "lr 1"),)), beside(90, 40, loss=30.0)):
        x, y = draw(scene).axes[0].x, draw(scene).axes[0].y
        values = [*scene.low, *scene.high, scene.now]
        assert x.low == y.low == 0
        assert max(*scene.updates, *(update for update, _ in scene.switches)) <= x.high
        assert max(values) <= y.high
        assert not y.log
    mean = [2.3, 1e-5, 3.0, 80.0, 1e-9, 600.0]
    highest = []
    for count in range(1, 7):
        up = draw(Curve([*range(count)], *[mean[:count]] * 3)).axes[0].y
        assert not up.log
        highest.append(up.high)
    assert highest == [3, 3, 3, 96, 96, 768]  # it only grows, by doubling
    exploded = draw(Curve([*range(3)], *[[2.3, 0.5, 3000.0]] * 3)).axes[0].y
    assert exploded.log, "a loss that explodes leaves the rest a flat line on a linear axis"
    assert exploded.high > 3000
    below = draw(Curve([*range(3)], *[[1.0, 0.2, -0.5]] * 3)).axes[0].y
    assert below.low <= -0.5
    compared = draw_comparison({"wide": Curve([*range(6)], mean, mean, mean)}).axes[0].y
    assert compared.log
    assert compared.words == "loss (log axis)"
    assert len({draw(curve(count)).axes[0].x for count in range(42, 49)}) == 1  # an axis moves rarely


def test_a_broken_curve_ends_and_says_so() -> None:
    drawing = draw(curve(50, broken=30))
    assert rows(drawing, "loss")[:, 0].max() == 30
    assert drawing.notice == "inf or NaN from update 30"
    assert not drawing.corner
    assert "inf or NaN from update 30" in drawing.words


def test_switches_are_marked_and_the_newest_are_named() -> None:
    switches = tuple((5 * number, f"lr {number}") for number in range(1, 10))
    drawing = draw(curve(60, switches=switches))
    for number, (update, name) in enumerate(switches):
        mark = drawing.find(f"switch {number}")
        assert list(mark.points) == [update, -AXES_EDGE, update, AXES_EDGE]
        assert (mark.dash, mark.words) == ("dashed", f"update {update}: {name}")
    names = [mark for mark in drawing.marks if isinstance(mark, Text)]
    assert [(name.texts, name.x) for name in names] == [((f"lr {n}",), 5.0 * n) for n in range(9, 3, -1)]


def beside(count: int, switched: int, loss: float = 0.2) -> Curve:
    """A run with a switch after which the loss swings, and its loss without the switch."""
    scene = curve(count, switches=((switched, "zero_grad off"),))
    grows = [max(x - switched, 0) / 20 * (1 + math.sin(x)) for x in scene.updates]
    swing = [y + more for y, more in zip(scene.mean, grows, strict=True)]
    updates = list(range(switched + 1, count + 1))
    mean = [loss * (1 + 0.1 * math.sin(x)) for x in updates]
    without = UnswitchedCurve(updates, mean, "zero_grad on", mean[-1])
    return dataclasses.replace(scene, mean=swing, low=swing, high=swing, now=swing[-1], unswitched=without)


def test_the_loss_without_the_switch_lies_beside_it() -> None:
    scene = beside(90, 40)
    drawing = draw(scene)
    assert scene.unswitched is not None
    assert rows(drawing, "without").T.tolist() == [scene.unswitched.updates, scene.unswitched.mean]
    mark = drawing.find("without")
    assert mark.dash  # a second cue beside its colour
    assert mark.width < drawing.find("loss").width
    assert drawing.corner[0].endswith("dashed: 0.218, had you left zero_grad on")
    assert "Had you left zero_grad on, the loss would be 0.218 now." in drawing.words
    broken = draw(dataclasses.replace(scene, broken=60))
    assert rows(broken, "without")[:, 0].max() == 90
    ended = UnswitchedCurve([41, 42, 43], [0.2] * 3, "zero_grad on", 0.2, "it took long")
    drawing = draw(dataclasses.replace(scene, unswitched=ended))
    assert drawing.corner[0].endswith("dashed: 0.2 at update 43, had you left zero_grad on")
    assert "the loss was 0.2 at update 43; it took long." in drawing.words


def test_what_would_have_been_leaves_the_readers_axis() -> None:
    alone = dataclasses.replace(beside(90, 40), unswitched=None)
    drawing = draw(beside(90, 40, loss=30.0))
    assert drawing.axes == draw(alone).axes
    name = drawing.find("without name")
    assert (name.texts, name.x, name.where) == (("32.7 \u2191",), 90, "top")
    assert not any(mark.id == "without name" for mark in draw(beside(90, 40)).marks)


def test_a_comparison_names_every_curve_and_dashes_it() -> None:
    curves = {"a": curve(90), "b": curve(80), "none": Curve([], [], [], []), "bad": curve(50, broken=9)}
    drawing = draw_comparison(curves, "two loops", reused=["b"], events={40: "here"})
    lines = [drawing.find(f"curve {number}") for number in range(4)]
    assert len({(line.stroke, line.dash) for line in lines}) == 4
    assert [line.stroke == "reused" for line in lines] == [False, True, False, False]
    assert rows(drawing, "curve 0")[:, 1].tolist() == curves["a"].mean
    names = [drawing.find(f"name {number}") for number in range(4)]
    assert names[3].texts == ("bad: inf at 9", "bad")
    assert names[0].texts[0] == f"a {short(curves['a'].now)}"
    assert (names[0].x, names[0].y, names[0].where) == (90, curves["a"].mean[-1], "margin")
    assert drawing.find("event 40 word").x == 40
    assert draw_comparison({}, "nothing").words == "nothing: nothing was run."


def test_a_run_that_diverges_leaves_the_picture() -> None:
    losses = {"tame": [1.0, 0.8, 0.6, 0.5], "wild": [1.0, 2.0, 8.0, 64.0]}
    curves = {name: Curve([1, 2, 3, 4], y, y, y, broken=5 if name == "wild" else None) for name, y in losses.items()}
    assert 2 < draw_comparison(curves).axes[0].y.high < 4


def test_the_scale_is_in_powers_of_two() -> None:
    drawing = draw(ScalerHistory([1, 2, 3, 4], [65536, 32768, 32768, 16384], [1, 3], [0, 0.5, 0.25, 1]))
    steps = rows(drawing, "scale")
    assert [2**power for power in steps[:, 1]] == [65536, 65536, 32768, 32768, 16384, 16384]
    assert all(x == next_x or y == next_y for (x, y), (next_x, next_y) in pairwise(steps.tolist()))
    assert rows(drawing, "skipped").tolist() == [[1, 16], [3, 15]]
    assert rows(drawing, "underflow").tolist() == [[1, 0], [2, 0.5], [3, 0.25], [4, 1]]
    assert (drawing.find("underflow").axes, drawing.axes[1].y.high) == (1, 1)
    assert drawing.corner == ("\u00d7 2 steps skipped",)
    assert "16,384" in drawing.words
