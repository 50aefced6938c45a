"""The picture of the 24 orders as rings: each order is there, and what breaks a ring is where it goes wrong."""

from __future__ import annotations

from itertools import permutations

import pytest

from gradlab.course import draw_rings, run_order
from gradlab.course.instruments.ring_panels import broken_way
from gradlab.course.instruments.ring_verdict import OrderRun

CALLS = ("zero_grad", "forward", "backward", "step")


def rings() -> dict[tuple[str, ...], list[OrderRun]]:
    found: dict[tuple[str, ...], list[OrderRun]] = {}
    for order in permutations(CALLS):
        at = order.index("zero_grad")
        found.setdefault(order[at:] + order[:at], []).append(run_order(" ".join(order), first_loss=True))
    return found


def test_each_ring_says_what_its_runs_did() -> None:
    drawing = draw_rings(rings()).drawings[0]
    texts = drawing.texts()
    assert drawing.title == "6 rings, 24 orders"
    assert [texts.count(said) for said in ("trains", "never moves", "error")] == [2, 3, 1]
    calls = [text for text in texts if text.split()[0] in CALLS]
    assert len(calls) == 24
    assert sum("\u2713" in text for text in calls) == 8
    assert sorted(text for text in calls if "late" in text) == ["step \u2713 late"] * 2


def test_a_ring_trains_exactly_where_no_way_is_broken() -> None:
    for calls, runs in rings().items():
        assert all(run.judged.trains == (broken_way(calls) is None) for run in runs), calls


def test_where_a_ring_is_broken() -> None:
    assert broken_way(CALLS) is None
    assert broken_way(("zero_grad", "step", "backward", "forward")) == (2, 4), "over forward, to zero_grad"
    assert broken_way(("zero_grad", "backward", "forward", "step")) == (2, 3)


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="one ring or more"):
        draw_rings({})
