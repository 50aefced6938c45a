"""The ring of orders: each verdict against a plain ``exec`` of the shown text and loops by hand; pictures and words."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gradlab import tasks
from gradlab.course import ring_of_orders, run_order, six_rings
from gradlab.drawing import Area, Drawing, batch_area
from gradlab.formatting import short
from gradlab.widgets import View

pytestmark = pytest.mark.slow

CALLS = ("zero_grad", "forward", "backward", "step")
USUAL = " ".join(CALLS)
ALL_24 = [" ".join(order) for order in permutations(CALLS)]
WITHOUT_ONE = [" ".join(call for call in CALLS if call != left) for left in CALLS]
DOUBLED = sorted({" ".join((*CALLS[:index], call, *CALLS[index:])) for call in CALLS for index in range(5)})
ORDERS = ALL_24 + WITHOUT_ONE + DOUBLED
TURNS = 60
LATE = "step zero_grad forward backward"
FORGOTTEN = "forward backward step"
STILL = "forward backward zero_grad step"
CRASH = "forward step zero_grad backward"
SHOWN = [USUAL, FORGOTTEN, CRASH, "step step step step step step step step"]


def flat(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@cache
def task() -> tasks.Task:
    return tasks.digits(batch=24, device="cpu")


def bare() -> dict[str, Any]:
    """The names that a text needs, made here from the public task."""
    batches, loss_fn = task().batches[:TURNS], nn.functional.cross_entropy
    return {"torch": torch, "model": task().build(seed=0), "loss_fn": loss_fn, "batches": batches}


def execute(text: str) -> tuple[Tensor, BaseException | None]:
    """Run a text as a learner would, in a namespace of its own; return the weights and the error."""
    names = bare()
    try:
        exec(text, names)
    except Exception as error:
        return flat(names["model"]), error
    return flat(names["model"]), None


@cache
def usual_weights() -> list[Tensor]:
    """The weights of the usual loop, written down by hand, before the loop and after each of its turns."""
    model = bare()["model"]
    optimizer, weights = torch.optim.SGD(model.parameters(), lr=0.2), [flat(model)]
    for x, y in bare()["batches"]:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        weights.append(flat(model))
    return weights


def test_the_verdict_is_that_of_a_plain_exec() -> None:
    usual = usual_weights()
    for order in ORDERS:
        tried = run_order(order)
        weights, error = execute(tried.trial.source)
        assert torch.equal(tried.trial.weights, weights), order
        assert (tried.trial.error is None) == (error is None), order
        if error is not None:
            assert (tried.verdict, type(error).__name__ in tried.result) == ("error", True), order
        elif torch.equal(weights, usual[TURNS]):
            assert tried.verdict == "right", order
        elif torch.equal(weights, usual[TURNS - 1]):
            assert (tried.verdict, "1 update late" in tried.result) == ("harmless", True), order
        else:
            assert tried.verdict == "wrong", order
            assert ("never move" in tried.result) == torch.equal(weights, usual[0]), order


@pytest.mark.parametrize("order", [LATE, FORGOTTEN, f"{USUAL} step"])
def test_grad_is_the_sum_of_the_backwards_that_are_named(order: str) -> None:
    """After each call ``.grad`` is the sum of the gradients, taken by autograd.grad, of the backwards that it holds."""
    names = bare()
    model = names["model"]
    parameters = list(model.parameters())
    names["optimizer"] = torch.optim.SGD(parameters, lr=0.2)
    trial = run_order(order).trial
    lines = trial.source.splitlines()
    gradients: dict[int, list[Tensor]] = {}
    applied = dict[int, int]()
    for call in (call for call in trial.calls if call.turn <= 6):
        names["x"], names["y"] = names["batches"][call.turn - 1]
        if call.piece == "backward":
            gradients[call.number] = list(torch.autograd.grad(names["loss"], parameters, retain_graph=True))
        exec(lines[call.line - 1].strip(), names)
        if call.piece == "step":
            applied |= {n: applied.get(n, 0) + 1 for n in call.after.times}
        assert call.after.times == {n: applied.get(n, 0) for n in call.after.times}
        for index, parameter in enumerate(parameters):
            if call.after.times:
                expected = torch.stack([gradients[number][index] for number in call.after.times]).sum(0)
                torch.testing.assert_close(parameter.grad, expected)
            else:
                assert parameter.grad is None


@pytest.mark.parametrize(
    ("order", "verdict", "result", "why"),
    [
        ("backward step zero_grad forward", "error", "NameError", "no loss yet"),
        ("zero_grad backward step", "error", "NameError", "Nothing computes a loss"),
        ("zero_grad forward backward backward step", "error", "Turn 1", "a second time"),
        (CRASH, "error", "Turn 2", "`step()` writes to the weights"),
        (FORGOTTEN, "wrong", "differ", "59 of 60 steps apply a gradient that was applied before."),
        (f"{USUAL} step", "wrong", "differ", "60 of 120 steps apply a gradient that was applied before"),
        (FORGOTTEN, "wrong", "differ", "finds 60 gradients in `.grad`, 59 of them applied before"),
        ("zero_grad forward backward forward backward step", "wrong", "differ", "60 steps apply 2 new"),
    ],
)
def test_a_verdict_is_explained(order: str, verdict: str, result: str, why: str) -> None:
    tried = run_order(order)
    assert tried.verdict == verdict
    assert result in tried.result
    assert why in tried.why


def test_running_an_order_leaves_torch_as_it_was() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with torch.no_grad():
        assert run_order("zero_grad zero_grad forward backward step zero_grad").verdict == "right"
        assert not torch.is_grad_enabled()
    assert torch.equal(before, torch.get_rng_state())


# Pictures and words ---------------------------------------------------------------------------------------------------


def view_of(order: str, call: int = 12) -> View:
    return ring_of_orders().render({"order": order, "call": call})


def panels(order: str, call: int = 12) -> dict[str, Drawing]:
    return dict(view_of(order, call).panels)


def spans_of(mark: Area) -> list[float]:
    """Left, right, lower and upper edge of a rectangle."""
    x, y = np.reshape(mark.points, (-1, 2)).T
    return [x.min(), x.max(), y.min(), y.max()]


@pytest.mark.parametrize("order", SHOWN)
def test_words_and_pictures_tell_the_same(order: str) -> None:
    tried, drawn, state = run_order(order), panels(order), view_of(order).state
    assert state.lower().startswith(tried.verdict)
    assert drawn["ring"].corner[0].endswith(tried.verdict)
    assert f"usual {short(tried.usual.losses[-1])}" in drawn["loss"].texts()
    curve = np.reshape(drawn["loss"].find("curve 0").points, (-1, 2))
    assert curve.tolist() == [list(each) for each in enumerate(tried.usual.losses)]
    if tried.verdict == "error":
        assert f"Turn {tried.trial.turns + 1}, line" in state
        assert f"this order stops in turn {tried.trial.turns + 1}" in drawn["loss"].texts()
    else:
        loss = short(tried.trial.losses[-1])
        assert f"loss {loss}" in state
        assert f"this order {loss}" in drawn["loss"].texts()


@pytest.mark.parametrize("order", SHOWN)
def test_backwards_in_grad_are_stacked_in_columns_of_calls(order: str) -> None:
    drawing = panels(order)["grad"]
    calls = run_order(order).trial.calls[:12]
    assert [span.texts[0] for span in drawing.axes[0].x.spans] == [call.piece for call in calls]
    tiles = {mark.id: mark for mark in drawing.marks if isinstance(mark, Area) and mark.id.startswith("tile")}
    for column, call in enumerate(calls):
        assert drawing.axes[0].y.high > len(call.after.times) + 1
        for level, (number, times) in enumerate(call.after.times.items()):
            tile = tiles.pop(f"tile {column}.{number}")
            style = batch_area(("added", "applied", "reused")[min(times, 2)])
            assert (tile.fill, tile.stroke, tile.hatch) == (style["fill"], style["stroke"], style.get("hatch", ""))
            written = f"\u00d7 {times}" if times > 1 else str(number)
            assert drawing.find(f"number {column}.{number}").texts[0] == written
            assert spans_of(tile) == pytest.approx([column, column + 1, level, level + 1], abs=0.1)
        cleared = {mark.id for mark in drawing.marks if mark.id.startswith(f"cleared {column}.")}
        assert len(cleared) == (len(call.before.times) if call.piece == "zero_grad" else 0)
        if call.piece == "step" and not call.failed:
            sign = drawing.find(f"sign {column}")
            assert sign.shape == ("triangle" if call.before.times else "cross")
            assert tuple(sign.points) == (column + 0.5, len(call.after.times) + 0.5)
    assert not tiles


def test_a_call_is_lit_in_the_ring_the_columns_and_the_code() -> None:
    for call in (1, 6, 11, 12):
        piece = CALLS[(call - 1) % 4]
        view, drawn = view_of(USUAL, call), panels(USUAL, call)
        framed = [mark.id for mark in drawn["ring"].marks if isinstance(mark, Area) and mark.width > 1]
        assert framed == [f"call {(call - 1) % 4}"]
        assert spans_of(drawn["grad"].find("now"))[:2] == [call - 1, call]
        line = view.code.splitlines()[view.lit[0] - 1]
        assert {"forward": "model(x)"}.get(piece, f"{piece}()") in line
        assert f"Turn {(call + 3) // 4}, {piece}:" in view.note
    assert view_of(USUAL, 0).lit == (0, 0)


def test_calls_stand_clockwise_with_what_each_did_last() -> None:
    drawing = panels(USUAL, 12)["ring"]
    names = [drawing.find(f"name {number}") for number in range(4)]
    assert [name.texts[0] for name in names] == [*CALLS]
    top, right, bottom, left = ((round(name.x, 9), round(name.y, 9)) for name in names)
    assert top[1] == -bottom[1] > 0 == top[0] == right[1]
    assert right[0] == -left[0] > 0
    assert "applies gradients 1\u20133 (1\u20132 again)" in panels(FORGOTTEN, 9)["ring"].texts()
    still = (STILL, 4, "finds None, moves nothing")
    for order, call, effect in ((USUAL, 9, "clears gradient 2"), (CRASH, 8, "raises an error"), still):
        assert effect in panels(order, call)["ring"].texts()


def test_the_six_rings_show_the_verdict_on_each_order() -> None:
    """Orders of a ring end alike wherever one begins, but for turn 1; the fault is the way that two rules name."""
    (drawing,) = six_rings().drawings
    for number in range(6):
        ring = tuple(drawing.find(f"name {number}.{index}").texts[0].split()[0] for index in range(4))
        after_backward, after_forward = ((ring + ring)[ring.index(call) + 1 :] for call in ("backward", "forward"))
        if after_backward.index("zero_grad") < after_backward.index("step"):
            end, fault = "the weights never move", after_backward.index("zero_grad") + 1
        elif after_forward.index("step") < after_forward.index("backward"):
            end, fault = "RuntimeError in turn 2", after_forward.index("step") + 1
        else:
            end, fault = "the weights of the usual loop", 0
        arrows = [mark for mark in drawing.marks if mark.id.startswith(f"arrow {number} fault")]
        assert len(arrows) == fault, ring
        for index in range(4):
            outcome = run_order(" ".join(ring[index:] + ring[:index])).outcome
            sign = drawing.find(f"name {number}.{index}").texts[0].partition(" ")[2]
            assert outcome.partition(",")[0] in (end, "NameError in turn 1")
            late = " late" if "late" in outcome else ""
            assert sign == ("\u2013" if "NameError" in outcome else ("\u2717" if fault else "\u2713") + late)
