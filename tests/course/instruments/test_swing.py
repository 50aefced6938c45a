"""The swing: its path against SGD by hand, its period and limits against long runs; picture and words."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from page import Page

from gradlab.course import swing
from gradlab.course.instruments import swing_numbers as numbers
from gradlab.course.instruments.swing import draw_map

CASES = [
    {"lr": lr, "curvature": curvature, "momentum": momentum, "zero_grad": zero_grad}
    for lr, curvature, momentum, zero_grad in [
        (random.Random(seed).choice([0.01, 0.1, 0.3, 0.7, 1.3, 1.9, 2.1, 3.9]), *rest)
        for seed, rest in enumerate((c, m, z) for c in (0.2, 1.0, 2.0) for m in (0.0, 0.5, 0.9) for z in (True, False))
    ]
]


def by_hand(
    lr: float, curvature: float, momentum: float, zero_grad: bool, updates: int = 120, start: float = 1.0
) -> list[float]:
    """SGD's rules in plain numbers: .grad adds unless it is cleared, the velocity adds .grad."""
    weight, grad, velocity, path = start, 0.0, 0.0, [start]
    for _ in range(updates):
        grad = (0.0 if zero_grad else grad) + curvature * weight
        velocity = momentum * velocity + grad
        weight -= lr * velocity
        path.append(weight if abs(weight) < 1e250 else math.copysign(1e250, weight))
        weight = path[-1]
    return path


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_predicted_is_what_a_long_run_does(case: dict[str, Any]) -> None:
    path = numbers.run_swing(**case)
    early, late = (max(map(abs, by_hand(**case, updates=u)[-200:])) for u in (600, 1200))
    if early > 1e-200 and late < 1e200:
        assert path.factor == pytest.approx((late / early) ** (1 / 600), abs=2e-2)
    assert (
        path.stability
        == {-1: "settles", 0: "swings for ever", 1: "runs away"}[
            0 if 0.2 < late / max(early, 1e-300) < 5 and 0.1 < late < 1e100 else (1 if late > 1 else -1)
        ]
    )
    if math.isfinite(path.predicted_period) and not math.isnan(path.measured_period):
        assert path.measured_period == pytest.approx(path.predicted_period, rel=0.06)


def test_the_half_period_without_zero_grad_is_the_one_in_the_lesson() -> None:
    """pi / arccos(1 - lr * curvature / 2), and long enough a run measures it to a thousandth."""
    path = numbers.run_swing(0.1, 1.0, 0.0, False)
    assert path.predicted_period / 2 == pytest.approx(math.pi / math.acos(1 - 0.1 / 2), rel=1e-12)
    assert path.measured_period / 2 == pytest.approx(path.predicted_period / 2, rel=1e-3)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_the_limits_that_the_words_name(momentum: float) -> None:
    limit = 2 * (1 + momentum)
    assert numbers.run_swing(limit * 0.99, 1.0, momentum, True).stability == "settles"
    assert numbers.run_swing(limit * 1.01, 1.0, momentum, True).stability == "runs away"
    assert f"above lr × curvature = {limit:g}" in swing(zero_grad=True, momentum=momentum).text
    assert numbers.run_swing(3.99, 1.0, 0.0, False).stability == "swings for ever"
    assert [numbers.run_swing(s, 1.0, 0.0, False).stability for s in (4.0, 4.01)] == ["runs away"] * 2


@pytest.mark.parametrize("seed", range(6))
def test_any_number_between_the_ends_gives_the_path_of_sgd_by_hand(seed: int) -> None:
    """A hand may stop anywhere: each weight is that of SGD by hand."""
    chance = random.Random(seed)
    lab = swing()
    page = Page(lab)
    at = {"zero_grad": seed % 2 == 0}
    for name in ("lr", "momentum", "curvature", "start"):
        control = page.control(name)
        steps = round((control["high"] - control["low"]) / control["step"])
        at[name] = round(control["low"] + chance.randint(0, steps) * control["step"], 10)
        if name == "momentum" and seed < 2:
            at[name] = 0.0
        page.turn(name, at[name])
    page.turn("zero_grad", at["zero_grad"])
    assert (page.alarm, lab.values) == ("", at)
    path, wanted = numbers.run_swing(**at), by_hand(**at)
    assert path.weights == pytest.approx(wanted[: len(path.weights)], rel=1e-9, abs=1e-12)
    assert len(path.weights) == 121 or abs(wanted[len(path.weights)]) >= 1e6
    told = page.control("lr")["label"] + f"={at['lr']:g}"
    assert told in page.code()
    valley = page.panels["valley"]
    ((x, _),) = valley.points("start")
    axis = valley.draggable("start")["drag"]["x"]
    assert axis["start"] + axis["per_pixel"] * x == pytest.approx(at["start"], abs=0.02 * abs(axis["per_pixel"] * 400))


def test_a_still_shows_the_weight_and_the_valley(tmp_path: Path) -> None:
    """The map is for dragging: without zero_grad it has one colour, and beside two panels it leaves a hole."""
    lab = swing(lr=3.9)
    still = lab.save(tmp_path / "still.svg").read_text(encoding="utf-8")
    assert "the weight, update by update" in still
    assert "its path in the valley" in still
    assert "what becomes of it" not in still
    assert "optimizer.step()" in still
    assert set(Page(lab).panels) == {"weight", "valley", "map"}


def test_the_start_is_dragged_and_the_axes_rest() -> None:
    page = Page(swing(lr=0.3))
    before = page.panels["valley"]
    page.ask("drag", name="start", x=-0.6034, y=9.0)
    assert page.values["start"] == -0.6
    assert "from w = -0.6: the weight swings for ever" in page.state
    after = page.panels["valley"]
    assert before.draggable("start")["drag"] == after.draggable("start")["drag"]
    assert before.points("valley") == after.points("valley")
    ((x, y),) = after.points("start")
    axes = after.draggable("start")["drag"]
    assert axes["x"]["start"] + axes["x"]["per_pixel"] * x == pytest.approx(-0.6, abs=0.01)
    assert axes["y"]["start"] + axes["y"]["per_pixel"] * y == pytest.approx(0.6**2 / 2, abs=0.01)
    page.ask("drag", name="start", x=50.0, y=0.0)
    assert page.values["start"] == 1.2


def test_picture_and_words_show_the_same_numbers() -> None:
    page = Page(swing(lr=0.3))
    told = re.search(r"predicted ([\d.]+), measured ([\d.]+)", page.state)
    assert told
    corner = next(text for text in page.panels["weight"].texts() if text.startswith("period"))
    assert told[1] in corner
    drawn = page.panels["weight"].points("weights")
    middle = page.panels["weight"].points("lowest")[0][1]
    top = min(y for _, y in drawn)
    path = by_hand(0.3, 1.0, 0.0, False)
    for (_, y), weight in zip(drawn, path, strict=True):
        assert (middle - y) / (middle - top) == pytest.approx(weight / max(path), abs=0.02)


def test_the_map_shows_where_runs_run_away() -> None:
    """Cells of the map against runs by hand in their middle, those near an edge left out."""
    drawing = draw_map(0.1, 1.0, 0.0, True, 400, 300)
    image = drawing.find("stability")
    cells = np.asarray(image.cells).reshape(-1, image.columns)
    rows = len(cells)
    seen = set()
    for row in range(1, rows, 6):
        for column in range(1, image.columns, 9):
            s, momentum = (column + 0.5) / image.columns * 4.6, 1 - (row + 0.5) / rows
            if abs(s - 2 * (1 + momentum)) < 0.1 or momentum > 0.97:
                continue
            end = max(map(abs, by_hand(s, 1.0, momentum, True, 900)[-20:]))
            assert (cells[row, column] == 2) == (end > 1), (s, momentum)
            seen.add(int(cells[row, column]))
    assert seen == {0, 1, 2}


def test_the_code_that_is_shown_is_what_was_run() -> None:
    lab = swing(lr=0.2, momentum=0.5)
    names: dict[str, Any] = {"torch": torch, "path": []}
    exec(Page(lab).shown["code"]["source"], names)
    assert tuple(names["path"]) == numbers.run_swing(0.2, 1.0, 0.5, False).weights[1:][: len(names["path"])]


def test_a_swing_that_stays_bounded_is_drawn_whole() -> None:
    """At lr 3.9 it swings for ever, far but never away: every weight is in the picture, and none is said to be gone."""
    lab = swing(lr=3.9)
    weight = Page(lab).panels["weight"]
    assert len(weight.points("weights")) == numbers.UPDATES + 1
    assert not any("out of the picture" in text for text in weight.texts())
    lab.turn("lr", 4.0)
    drawn = by_hand(4.0, 1.0, 0.0, False)
    gone = next(at for at in range(len(drawn)) if all(abs(w) > 3.75 for w in drawn[at:]))
    assert f"out of the picture from update {gone}" in Page(lab).panels["weight"].texts()
