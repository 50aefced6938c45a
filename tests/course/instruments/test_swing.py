"""The swing: its path against SGD by hand, its period and limits against long runs; picture and words."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
import torch

from gradlab.course import swing
from gradlab.course.instruments.swing import Swing, run_swing
from gradlab.drawing import Drawing, Listing

CASES = [
    {"lr": lr, "curvature": curvature, "momentum": momentum, "zero_grad": zero_grad}
    for lr, curvature, momentum, zero_grad in [
        (0.1, 0.2, 0.0, False),
        (1.3, 2.0, 0.0, False),
        (3.9, 1.0, 0.0, False),
        (0.3, 1.0, 0.5, False),
        (0.7, 0.2, 0.9, False),
        (0.3, 1.0, 0.0, True),
        (2.1, 1.0, 0.0, True),
        (1.9, 1.0, 0.5, True),
        (0.01, 2.0, 0.9, True),
        (3.9, 2.0, 0.9, True),
    ]
]


def by_hand(lr: float, curvature: float, momentum: float, zero_grad: bool, updates: int = 120) -> list[float]:
    """SGD's rules in plain numbers: .grad adds unless it is cleared, the velocity adds .grad."""
    weight, grad, velocity, path = 1.0, 0.0, 0.0, [1.0]
    for _ in range(updates):
        grad = (0.0 if zero_grad else grad) + curvature * weight
        velocity = momentum * velocity + grad
        weight -= lr * velocity
        weight = weight if abs(weight) < 1e250 else math.copysign(1e250, weight)
        path.append(weight)
    return path


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_path_is_sgd_by_hand_and_the_prediction_its_long_run(case: dict[str, Any]) -> None:
    lab = swing()
    for name, value in case.items():
        lab.turn(name, value)
    path, wanted = run_swing(**lab.values), by_hand(**case)
    assert path.weights == pytest.approx(wanted[: len(path.weights)], rel=1e-9, abs=1e-12)
    assert len(path.weights) == 121 or abs(wanted[len(path.weights)]) >= 1e6
    early, late = (max(map(abs, by_hand(**case, updates=u)[-200:])) for u in (600, 1200))
    if early > 1e-200 and late < 1e200:
        assert path.factor == pytest.approx((late / early) ** (1 / 600), abs=2e-2)
    bounded = 0.2 < late / max(early, 1e-300) < 5 and 0.1 < late < 1e100
    assert path.stability == ("swings for ever" if bounded else "runs away" if late > 1 else "settles")
    assert path.stability in lab.text
    if math.isfinite(path.predicted_period) and not math.isnan(path.measured_period):
        assert path.measured_period == pytest.approx(path.predicted_period, rel=0.06)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_the_limits_that_the_words_name(momentum: float) -> None:
    limit = 2 * (1 + momentum)
    assert run_swing(limit * 0.99, 1.0, momentum, True).stability == "settles"
    assert run_swing(limit * 1.01, 1.0, momentum, True).stability == "runs away"
    assert f"above lr × curvature = {limit:g}" in swing(zero_grad=True, momentum=momentum).text
    assert run_swing(3.99, 1.0, 0.0, False).stability == "swings for ever"
    assert [run_swing(s, 1.0, 0.0, False).stability for s in (4.0, 4.01)] == ["runs away"] * 2
    lesson = run_swing(0.1, 1.0, 0.0, False)  # half a period is pi / arccos(1 - lr * curvature / 2)
    assert lesson.predicted_period / 2 == pytest.approx(math.pi / math.acos(1 - 0.1 / 2), rel=1e-12)
    assert lesson.measured_period == pytest.approx(lesson.predicted_period, rel=1e-3)


def drawn(lab: Swing, panel: int, id: str) -> np.ndarray:
    """The points of a mark, in numbers of the axes."""
    return np.reshape(lab.drawings()[panel].find(id).points, (-1, 2))


def test_a_still_shows_weight_valley_map_and_loop() -> None:
    *panels, loop = [each.drawing for each in swing(lr=3.9)._picture()]
    assert isinstance(loop, Listing)
    assert "optimizer.step()" in loop.source
    titles = ["the weight, update by update", "its path in the bowl", "all swings of SGD"]
    assert [panel.title for panel in panels if isinstance(panel, Drawing)] == titles


@pytest.mark.parametrize(
    ("lr", "momentum"), [(0.04, 0.3), (0.5, 0.3), (1.5, 0.0), (2.5, 0.3), (2.7, 0.3), (3.7, 0.9), (3.9, 0.9)]
)
def test_the_map_says_what_long_runs_do(lr: float, momentum: float) -> None:
    lab = swing(lr=lr, momentum=momentum, zero_grad=True)
    assert drawn(lab, 2, "here").tolist() == [[lr, momentum]]
    end = by_hand(lr, 1.0, momentum, True, 900)
    corners = drawn(lab, 2, "runs away")
    assert (lr > np.interp(momentum, [0, 1], corners[[0, 3], 0])) == (max(map(abs, end[-20:])) > 1)
    edge = drawn(lab, 2, "swings")[:-2]
    swings = any(a * b < 0 for a, b in itertools.pairwise(end))
    assert (lr > np.interp(momentum, edge[:, 1], edge[:, 0])) == swings


def test_no_zero_grad_is_the_upper_edge_of_the_map() -> None:
    assert drawn(swing(lr=3.0), 2, "here").tolist() == [[3.0, 1.0]]
    assert drawn(swing(), 2, "for ever").tolist() == [[0.0, 1.0], [4.0, 1.0]]
    assert "beyond this map" in swing(momentum=0.5).drawings()[2].words


@pytest.mark.parametrize("case", [{"lr": 0.3}, {"lr": 3.9}, {"lr": 0.2, "zero_grad": True, "curvature": 3.0}])
def test_every_weight_is_drawn_where_pytorch_put_it(case: dict[str, Any]) -> None:
    """At lr 3.9 it swings for ever, far but never away: none is out of the picture."""
    lab = swing(**case)
    names: dict[str, Any] = {"torch": torch, "path": [1.0]}
    exec(lab.render(lab.values).code, names)
    path = np.array(names["path"])
    assert drawn(lab, 0, "weights") == pytest.approx(np.column_stack([range(121), path]))
    assert drawn(lab, 0, "path") == pytest.approx(drawn(lab, 0, "weights"))
    curvature = case.get("curvature", 1.0)
    for id, part in (("start", path[:1]), ("old", path[:-1]), ("last", path[-1:]), ("path", path)):
        assert drawn(lab, 1, id) == pytest.approx(np.column_stack([part, curvature / 2 * part**2])), id
    period = re.search(r"predicted ([\d.]+), measured ([\d.]+)", lab.text)
    assert period is None or period[1] in lab.drawings()[0].corner[0]
    assert not any("out of the picture" in text for text in lab.drawings()[0].texts())


def test_a_swing_is_drawn_until_it_leaves_the_picture() -> None:
    lab, path = swing(lr=4.0), by_hand(4.0, 1.0, 0.0, False)
    top = lab.drawings()[0].axes[0].y.high
    gone = next(update for update in range(len(path)) if all(abs(weight) > top for weight in path[update:]))
    assert f"out of the picture from update {gone}" in lab.drawings()[0].texts()
    inside = [(float(update), weight) for update, weight in enumerate(path) if abs(weight) <= top]
    assert drawn(lab, 0, "weights").tolist() == [list(each) for each in inside]
    assert drawn(lab, 0, "path")[-1].tolist() == [gone, path[gone]]  # the line leaves through the edge
