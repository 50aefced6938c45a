"""Two ranks: what the two real processes saw equals a plain loop in one process, and words and pictures tell it."""

from __future__ import annotations

import math
import os
import re

import numpy as np
import pytest
import torch
from torch.nn.functional import mse_loss

from gradlab.course import two_ranks
from gradlab.course.instruments import two_ranks as shown
from gradlab.course.instruments import two_ranks_numbers as numbers
from gradlab.course.instruments.two_ranks_numbers import (
    LoopSettings,
    Moment,
    all_settings,
    make_data,
    moments_of,
    run_ranks,
)
from gradlab.drawing import Arrow

pytestmark = pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")
ALL = all_settings()


def moments(**settings: object) -> list[Moment]:
    each = LoopSettings(**settings)  # type: ignore[arg-type]
    return moments_of(each, run_ranks()[each])


def pair(tensor: torch.Tensor) -> list[float]:
    return tensor.flatten().tolist()


def plain_loop(settings: LoopSettings) -> list[tuple[str, list[list[float] | None], list[list[float]], int]]:
    """Both ranks in one process, by torch.autograd.grad and a mean: (statement, .grad, weights, messages) each time."""
    inputs, targets = make_data()
    parts = [slice(0, 8), slice(8, 16)]
    weights = [torch.zeros(1, 2), torch.zeros(1, 2)]
    grads: list[torch.Tensor | None] = [None, None]
    messages, micro, seen = 0, 0, []

    def note(statement: str) -> None:
        held = [None if grad is None else pair(grad) for grad in grads]
        seen.append((statement, held, [pair(each) for each in weights], messages))

    note("start")
    for _ in range(24 // (2 + 2 * settings.accumulate)):
        if settings.forgets != "both":
            grads[0] = None
        if settings.forgets == "none":
            grads[1] = None
        note("zero_grad")
        for turn in range(settings.accumulate):
            for rank, part in enumerate(parts):
                w = weights[rank].clone().requires_grad_()
                loss = mse_loss(inputs[micro, part] @ w.T, targets[micro, part])
                (own,) = torch.autograd.grad(loss / settings.accumulate, w)
                grads[rank] = own if grads[rank] is None else grads[rank] + own
            micro += 1
            note("backward")
            last, opening = turn == settings.accumulate - 1, turn == 0
            if settings.no_sync == "off" or (last if settings.no_sync == "all but the last" else opening):
                mean = (grads[0] + grads[1]) / 2
                grads, messages = [mean, mean], messages + 1
            note("all-reduce")
        weights = [w - 0.15 * grad for w, grad in zip(weights, grads, strict=True)]
        note("step")
    return seen


@pytest.mark.parametrize("no_sync", ["off", "all but the last", "all but the first"])
def test_the_processes_do_what_a_plain_loop_does(no_sync: str) -> None:
    for settings in (each for each in ALL if each.no_sync == no_sync):
        found = moments_of(settings, run_ranks()[settings])
        expected = plain_loop(settings)
        assert [moment.statement for moment in found] == [statement for statement, *_ in expected]
        assert len(found) == 25
        for moment, (_, grads, weights, messages) in zip(found, expected, strict=True):
            assert len(moment.messages) == messages
            assert set(moment.messages) <= {2 * 4}  # two weights in float32
            for rank, grad, weight in zip(moment.ranks, grads, weights, strict=True):
                assert rank.path[-1] == pytest.approx(weight, abs=1e-5), settings
                assert (rank.grad is None) == (grad is None)
                if grad is not None and rank.grad is not None:
                    assert rank.grad == pytest.approx(grad, abs=1e-5), settings
                    summed = [math.fsum(edges) for edges in zip(*((a.x, a.y) for a in rank.arrows), strict=True)]
                    assert summed == pytest.approx(grad, abs=1e-5), settings
                    assert math.fsum(arrow.share for arrow in rank.arrows) == pytest.approx(1, abs=1e-5)


def test_what_is_left_over_was_applied_by_a_step() -> None:
    found = moments(forgets="rank 1")
    second = [moment for moment in found if moment.update == 2]
    assert [[arrow.names[0] for arrow in moment.ranks[1].arrows] for moment in second] == [
        ["left over"],  # zero_grad is forgotten: half of each rank's first batch is left
        ["left over", "rank 1's batch 2"],
        *[["left over", "\u00bd of rank 0's batch 2", "\u00bd of rank 1's batch 2"]] * 2,
    ]
    assert [len(moment.ranks[0].arrows) for moment in second] == [0, 1, 3, 3]  # the mean brings it to rank 0 as well
    old, first = second[-1].ranks[0].arrows[0], found[3].ranks[0].grad
    assert first is not None
    assert (old.x, old.y) == pytest.approx([edge / 2 for edge in first], abs=1e-6)
    drawing = shown.draw_rank_gradient(found, second[-1], 0)
    assert "left over \u00d7 2" in drawing.texts()
    assert re.search(r"left over [^;]*, applied 2 times; \u00bd of rank 0's batch 2 [^;]*, applied once", drawing.words)
    for settings in ({"forgets": "rank 1"}, {}):
        arrows = [arrow for moment in moments(**settings) for rank in moment.ranks for arrow in rank.arrows]
        assert all(arrow.applied[1] > 0 for arrow in arrows if arrow.names[0] == "left over")
        assert any(arrow.applied[1] > 1 for arrow in arrows) == bool(settings)


def test_only_the_mistake_with_no_sync_lets_the_ranks_drift() -> None:
    ends = [moments(accumulate=3, no_sync=when)[-1].apart for when in ("off", "all but the last", "all but the first")]
    assert ends[:2] == [0.0, 0.0]
    assert ends[2] > 0.3
    last = moments()[-1]  # without a mistake they end where one process alone does
    assert last.alone[-1] == pytest.approx(last.ranks[0].path[-1], abs=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"forgets": "rank 1"},
        {"accumulate": 3, "no_sync": "all but the first"},
    ],
)
def test_words_and_picture_tell_the_same_numbers(settings: dict[str, object]) -> None:
    instrument = two_ranks(**settings)
    for moment in [*range(9), 23, 24]:
        instrument.turn("moment", moment)
        view = instrument._now()
        lit = view.code.splitlines()[view.lit[0] - 1] if moment else ""
        assert lit.strip() in ("", "optimizer.zero_grad()", "loss.backward()", "optimizer.step()")
        zero, one, weights = instrument.drawings()
        assert all(drawing.corner[0] in drawing.words for drawing in (zero, one))
        told = re.findall(r"\.grad is (\(.*?\)|None) in rank 0 and (\(.*?\)|None) in rank 1", instrument.text)
        if told:
            assert told == [(zero.corner[0], one.corner[0])]
        mean = re.findall(r"both get the mean: \.grad is (\(.*?\))", instrument.text)
        if mean:
            assert zero.corner[0] == one.corner[0] == mean[0]
        if ", step:" in instrument.text:
            sent = moments(**settings)[moment].messages
            assert f" {len(sent)} all-reduce{'s' * (len(sent) != 1)}, {8 * len(sent)} bytes " in instrument.text
            apart = re.findall(r"([\d.]+) apart", instrument.text)
            said = "the ranks are equal" if not apart else f"the ranks are {apart[0]} apart"
            assert weights.corner[0] == said


def test_arrows_and_ways_are_those_of_the_moment() -> None:
    instrument = two_ranks(accumulate=3, no_sync="all but the first")
    axes = [[drawing.axes for drawing in instrument.drawings()]]
    for number, now in enumerate(moments(accumulate=3, no_sync="all but the first")):
        instrument.turn("moment", number)
        *ranks, weights = instrument.drawings()
        axes.append([drawing.axes for drawing in instrument.drawings()])
        for drawing, rank in zip(ranks, now.ranks, strict=True):
            arrows = [mark.points for mark in drawing.marks if mark.id.startswith("arrow ") and isinstance(mark, Arrow)]
            steps = [(x1 - x0, y1 - y0) for x0, y0, x1, y1 in arrows]
            assert np.ravel(steps) == pytest.approx(np.ravel([(each.x, each.y) for each in rank.arrows]))
            if rank.grad:
                assert drawing.find("sum").points == pytest.approx((0, 0, *rank.grad), abs=1e-5)
                assert arrows[-1][2:] == pytest.approx(rank.grad, abs=1e-5), "head to tail to their sum"
        for name, path in (("rank 0", now.ranks[0].path), ("rank 1", now.ranks[1].path), ("one process", now.alone)):
            assert weights.find(f"{name} way").points == pytest.approx(np.ravel(path))
            text = weights.find(f"{name} name")
            assert (text.x, text.y) == path[-1]
    assert all(each == axes[0] for each in axes), "they rest from moment to moment"
    for each in axes[0]:
        assert each[0].equal, "arrows keep their angles"


def test_where_processes_cannot_run_it_says_so_and_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[object] = []

    def refuse(*arguments: object, **options: object) -> None:
        starts.append(arguments)
        raise PermissionError("Operation not permitted")

    numbers._results.cache_clear()
    shown._moments.cache_clear()
    monkeypatch.setattr(numbers, "launch", refuse)
    try:
        instrument = two_ranks()
        for moment in range(5):
            instrument.turn("moment", moment)
            assert "could not be started here: Operation not permitted" in instrument.text
        (drawing,) = instrument.drawings()
        assert "Operation not" in drawing.words
        with pytest.raises(RuntimeError, match="Operation not permitted"):
            instrument.packed()  # a page would show the failure for ever
        assert len(starts) == 1
        assert "Operation not permitted" in two_ranks().text
        assert len(starts) == 2
    finally:
        numbers._results.cache_clear()
