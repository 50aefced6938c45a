"""The ring's pictures and words: the same numbers in both, and a page without a kernel that holds all orders."""

from __future__ import annotations

import re
from functools import cache
from itertools import permutations
from typing import Any

import pytest

from gradlab.course import draw_rings, ring_of_orders, run_order
from gradlab.course.instruments.ring import RingOfOrders
from gradlab.course.instruments.ring_panels import broken_way
from gradlab.course.instruments.ring_trial import PIECES
from gradlab.course.instruments.ring_verdict import OrderRun
from gradlab.drawing import Dots, Drawing
from gradlab.drawing import Path as Line
from gradlab.formatting import short
from gradlab.widgets import View

USUAL = "zero_grad forward backward step"
FORGOTTEN = "forward backward step"
STILL = "forward backward zero_grad step"
LATE = "step zero_grad forward backward"
CRASH = "forward step zero_grad backward"
ORDERS = [USUAL, FORGOTTEN, CRASH, "step step step step step step step step"]


@cache
def ring() -> RingOfOrders:
    return ring_of_orders()  # one for all tests: it runs each loop once


def look(order: str, **options: Any) -> View:
    return ring().render({**ring().values, "order": order, **options})


def ran(order: str) -> OrderRun:
    return ring().ran({**ring().values, "order": order})


def panels(order: str, width: int = 460, height: int = 300, **options: Any) -> dict[str, Drawing]:
    return {name: draw(width, height) for name, draw in look(order, **options).panels.items()}


@pytest.mark.parametrize("order", ORDERS)
def test_words_and_pictures_tell_the_same(order: str) -> None:
    tried, drawn, said = ran(order), panels(order), look(order).state
    assert said.lower().startswith(tried.verdict)
    assert any(text.endswith(tried.verdict) for text in drawn["ring"].texts())
    assert f"usual {short(tried.usual.losses[-1])}" in drawn["loss"].texts()
    if tried.verdict == "error":
        assert f"Turn {tried.trial.turns + 1}, line" in said
        assert f"stops in turn {tried.trial.turns + 1}" in drawn["loss"].texts()
    else:
        loss = short(tried.trial.losses[-1])
        assert f"loss {loss}" in said
        assert f"this order {loss}" in drawn["loss"].texts()


@pytest.mark.parametrize("order", ORDERS)
def test_there_is_a_box_for_each_backward_in_grad(order: str) -> None:
    calls = ran(order).trial.calls[:12]
    drawing = panels(order)["grad"]
    boxes: dict[int, dict[int, str]] = {}
    for mark in drawing.marks:
        if isinstance(mark, Line) and (found := re.fullmatch(r"box (\d+)\.(\d+)", mark.id)):
            boxes.setdefault(int(found[1]), {})[int(found[2])] = mark.fill
            assert (mark.fill, mark.hatch) in (("fresh", ""), ("stale", "//"))
    assert "outdated" not in drawing.texts()
    for at, call in enumerate(calls):
        stale = {n for first, last in call.after.stale for n in range(first, last + 1)}
        held = {n for first, last in call.after.holds for n in range(first, last + 1)}
        assert boxes.get(at, {}) == {number: "stale" if number in stale else "fresh" for number in held}
    shapes = {mark.id: mark.shape for mark in drawing.marks if isinstance(mark, Dots)}
    for at, call in enumerate(calls):
        if call.piece == "step" and not call.failed:
            assert shapes[f"step {at}"] == ("triangle" if call.moved else "cross")


def test_an_outdated_gradient_has_a_mark_of_its_own() -> None:
    """Without ``zero_grad`` all three kinds lie in one column; backward 1 ran before any step, so it is fresh."""
    view = look("forward step backward", layers=1, call=6)
    columns, in_ring = view.panels["grad"](460, 300), view.panels["ring"](460, 300)
    marks = {mark.id: (mark.fill, mark.hatch, mark.dash) for mark in columns.marks if isinstance(mark, Line)}
    fresh, stale, outdated = marks["box 2.1"], marks["box 4.1"], marks["box 5.2"]
    assert len({fresh[0], stale[0], outdated[0]}) == 3
    assert len({fresh[1:], stale[1:], outdated[1:]}) == 3, "told by more than its colour"
    assert "outdated" in columns.texts()
    assert "outdated" in columns.find("box 5.2").words
    assert "the weights have moved since its forward" in in_ring.find("box 1").words
    assert ".grad: backwards 1\u20132 (1 applied, 2 outdated)" in view.note
    assert "2 outdated" in columns.words


def test_the_loss_curves_lie_where_the_losses_are() -> None:
    tried = ran(FORGOTTEN)
    drawing = panels(FORGOTTEN)["loss"]
    usual, loss = drawing.find("usual").points[1::2], drawing.find("loss").points[1::2]
    zero = max(y for y in drawing.find("axes").points[1::2] if y < 300 - 37)  # the x axis
    per_unit = (zero - usual[0]) / tried.usual.losses[0]
    for ys, losses in ((usual, tried.usual.losses), (loss, tried.trial.losses)):
        for y, value in zip(ys, losses, strict=True):
            assert zero - y == pytest.approx(per_unit * min(value, 2.875 * tried.usual.losses[0]), abs=0.01)
    assert f"beyond the panel: up to {short(max(tried.trial.losses))}" in drawing.texts()


def test_a_call_is_lit_in_the_ring_in_the_columns_and_in_the_code() -> None:
    for call in (1, 6, 11, 12):
        piece = USUAL.split()[(call - 1) % 4]
        view, drawn = look(USUAL, call=call), panels(USUAL, call=call)
        assert [mark.id for mark in drawn["ring"].marks if mark.id.startswith("frame")] == [f"frame {(call - 1) % 4}"]
        assert drawn["grad"].find("now")
        line = view.code.splitlines()[view.lit[0] - 1]
        assert {"forward": "model(x)"}.get(piece, f"{piece}()") in line
        assert f"Turn {(call + 3) // 4}, {piece}:" in view.note
    assert look(USUAL, call=0).lit == (0, 0)


def test_in_the_ring_a_forgotten_step_tells_what_it_applies_again() -> None:
    texts = panels(FORGOTTEN, call=9)["ring"].texts()
    assert "applies 1\u20133 (1\u20132 again)" in texts
    assert "turn 3" in texts
    assert "clears 2" in panels(USUAL, call=9)["ring"].texts()
    assert "raises an error" in panels(CRASH, call=8)["ring"].texts()
    assert "does nothing" in panels(STILL, call=4)["ring"].texts()
    one = panels(CRASH, layers=1, call=10)["ring"].texts()
    assert "applies 2 (outdated)" in one
    zeros = {"set_to_none": False, "optimizer": "SGD with momentum"}
    assert "applies zeros" in panels("zero_grad forward step backward", layers=1, call=7, **zeros)["ring"].texts()
    coasting = panels("zero_grad step forward backward step", call=7, **zeros)["ring"].texts()
    assert "applies zeros and moves on" in coasting


@pytest.mark.parametrize("order", [USUAL, ORDERS[-1]])
def test_the_turn_and_all_calls_have_room(order: str) -> None:
    texts = panels(order, 340, 230)["ring"].texts()
    assert [text for text in texts if text in ("zero_grad", "forward", "backward", "step")] == order.split()
    assert any(text.startswith("turn ") for text in texts)
    assert ".grad" in texts


def test_the_forward_before_the_loop_is_off_where_it_changes_nothing() -> None:
    assert look(USUAL).off == ("first_loss",)
    turned = "backward step zero_grad forward"
    assert look(turned).off == ()
    assert look(turned).state.startswith("Error")
    assert look(turned, first_loss=True).state.startswith("Right")


# All orders as rings ------------------------------------------------------------------------------------------------


@cache
def rings() -> dict[tuple[str, ...], list[OrderRun]]:
    found: dict[tuple[str, ...], list[OrderRun]] = {}
    for order in permutations(PIECES):
        at = order.index("zero_grad")
        found.setdefault(order[at:] + order[:at], []).append(run_order(" ".join(order), first_loss=True))
    return found


def test_each_ring_says_what_its_runs_did() -> None:
    drawing = draw_rings(rings()).drawings[0]
    texts = drawing.texts()
    assert drawing.title == "6 rings, 24 orders"
    assert [texts.count(said) for said in ("trains", "never moves", "error")] == [2, 3, 1]
    calls = [text for text in texts if text.split()[0] in PIECES]
    assert len(calls) == 24
    assert sum("\u2713" in text for text in calls) == 8
    assert sorted(text for text in calls if "late" in text) == ["step \u2713 late"] * 2


def test_a_ring_trains_exactly_where_no_way_is_broken() -> None:
    with pytest.raises(ValueError, match="one ring or more"):
        draw_rings({})
    for calls, runs in rings().items():
        assert all(run.judged.trains == (broken_way(calls) is None) for run in runs), calls


def test_where_a_ring_is_broken() -> None:
    assert broken_way(PIECES) is None
    assert broken_way(("zero_grad", "step", "backward", "forward")) == (2, 4), "over forward, to zero_grad"
    assert broken_way(("zero_grad", "backward", "forward", "step")) == (2, 3)
