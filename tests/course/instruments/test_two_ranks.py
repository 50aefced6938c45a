"""Two ranks: the two real processes equal a plain loop in one process, and texts and pictures show it."""

from __future__ import annotations

import math
import os
import re
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch.nn.functional import mse_loss

from gradlab.course import two_ranks
from gradlab.course.instruments import two_ranks as shown
from gradlab.course.instruments import two_ranks_numbers as numbers
from gradlab.course.instruments.two_ranks_numbers import (
    LOOP_UPDATES,
    LoopSettings,
    RanksUpdate,
    all_settings,
    make_data,
    run_ranks,
    updates_of,
)
from gradlab.drawing import Arrow

pytestmark = pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")
ALL = all_settings()
ONE_IDEA: list[dict[str, object]] = [
    {},
    {"forgets": "rank 1"},
    {"accumulate": 3},
    {"accumulate": 3, "no_sync": "all but the first"},
]


def updates(**settings: object) -> list[RanksUpdate]:
    each = LoopSettings(**settings)  # type: ignore[arg-type]
    return updates_of(each, run_ranks()[each])


def pair(tensor: torch.Tensor) -> list[float]:
    return tensor.flatten().tolist()


class Plain(NamedTuple):
    """An update of both ranks in one process."""

    before: list[list[float]]
    stepped: list[list[float]]
    weights: list[list[float]]
    messages: int


def plain_loop(settings: LoopSettings) -> list[Plain]:
    """Both ranks in one process, by torch.autograd.grad and a mean."""
    inputs, targets = make_data()
    parts = [slice(0, 8), slice(8, 16)]
    weights = [torch.zeros(1, 2), torch.zeros(1, 2)]
    grads: list[torch.Tensor | None] = [None, None]
    messages, micro, updates = 0, 0, []
    for _ in range(LOOP_UPDATES):
        if settings.forgets != "both":
            grads[0] = None
        if settings.forgets == "none":
            grads[1] = None
        before: list[list[float]] = []
        for turn in range(settings.accumulate):
            for rank, part in enumerate(parts):
                w = weights[rank].clone().requires_grad_()
                index = micro % len(inputs)
                loss = mse_loss(inputs[index, part] @ w.T, targets[index, part])
                (own_grad,) = torch.autograd.grad(loss / settings.accumulate, w)
                grads[rank] = own_grad if grads[rank] is None else grads[rank] + own_grad
            micro += 1
            last, opening = turn == settings.accumulate - 1, turn == 0
            if settings.no_sync == "off" or (last if settings.no_sync == "all but the last" else opening):
                before = [pair(grad) for grad in grads if grad is not None]
                mean = (grads[0] + grads[1]) / 2
                grads, messages = [mean, mean], messages + 1
        weights = [w - 0.15 * grad for w, grad in zip(weights, grads, strict=True)]
        stepped = [pair(grad) for grad in grads if grad is not None]
        updates.append(Plain(before, stepped, [pair(each) for each in weights], messages))
    return updates


@pytest.mark.parametrize("no_sync", ["off", "all but the last", "all but the first"])
def test_the_processes_do_what_a_plain_loop_does(no_sync: str) -> None:
    for settings in (each for each in ALL if each.no_sync == no_sync):
        measured = updates_of(settings, run_ranks()[settings])
        expected = plain_loop(settings)
        assert [update.number for update in measured] == [1, 2, 3, 4, 5, 6]
        for update, plain in zip(measured, expected, strict=True):
            assert len(update.messages) == plain.messages
            assert set(update.messages) <= {2 * 4}  # two weights in float32
            assert [path[-1] for path in update.paths] == [pytest.approx(each, abs=1e-5) for each in plain.weights]
            for ranks, grads in ((update.before, plain.before), (update.stepped, plain.stepped)):
                for rank, grad in zip(ranks, grads, strict=True):
                    assert rank.grad == pytest.approx(grad, abs=1e-5), settings
                    summed = [math.fsum(edges) for edges in zip(*((a.x, a.y) for a in rank.arrows), strict=True)]
                    assert summed == pytest.approx(grad, abs=1e-5), settings
                    assert math.fsum(arrow.share for arrow in rank.arrows) == pytest.approx(1, abs=1e-5)


def test_what_is_left_over_was_applied_by_a_step() -> None:
    measured = updates(forgets="rank 1")
    second = measured[1]
    names = [[[arrow.names[0] for arrow in rank.arrows] for rank in ranks] for ranks in (second.before, second.stepped)]
    both = ["left over", "\u00bd of rank 0", "\u00bd of rank 1"]  # the mean brings it to rank 0 as well
    assert names == [[["rank 0"], ["left over", "rank 1"]], [both, both]]
    old, first = second.stepped[0].arrows[0], measured[0].stepped[0].grad
    assert (old.x, old.y) == pytest.approx([edge / 2 for edge in first], abs=1e-6)
    for settings in ({"forgets": "rank 1"}, {}):
        for update in updates(**settings):
            arrows = [arrow for rank in (*update.before, *update.stepped) for arrow in rank.arrows]
            old_ones = [arrow for arrow in arrows if arrow.names[0] == "left over"]
            assert bool(old_ones) == (bool(settings) and update.number > 1)
            assert all(arrow.applied == (1, update.number - 1) for arrow in old_ones)


def test_only_the_mistake_with_no_sync_lets_the_ranks_drift() -> None:
    ends = [updates(accumulate=3, no_sync=when)[-1].apart for when in ("off", "all but the last", "all but the first")]
    assert ends[:2] == [0.0, 0.0]
    assert ends[2] > 0.3
    last = updates()[-1]  # without a mistake they end where one process alone does
    assert last.alone[-1] == pytest.approx(last.paths[0][-1], abs=1e-5)


@pytest.mark.parametrize("settings", ONE_IDEA)
def test_words_and_picture_tell_the_same_numbers(settings: dict[str, object]) -> None:
    instrument = two_ranks(**settings)
    for number in range(1, LOOP_UPDATES + 1):
        instrument.turn("update", number)
        view = instrument._now()
        lines = [view.code.splitlines()[line - 1].strip() for line in view.lit]
        assert lines == ["loss.backward()", "optimizer.step()"]
        before, stepped, weights = instrument.drawings()
        numbers = re.findall(r"\.grad is (\(.*?\)) in rank 0 and (\(.*?\)) in rank 1", instrument.text)
        means = re.findall(r"both hold the mean, (\(.*?\))", instrument.text)
        assert len(numbers) + len(means) == 2
        for drawing, pairs in zip((before, stepped), [*numbers, *((mean, mean) for mean in means)], strict=True):
            assert [f".grad of rank {rank} is {pairs[rank]}" in drawing.words for rank in (0, 1)] == [True, True]
        assert stepped.corner[0] == ("both the same" if means else "two different gradients")
        sent = updates(**settings)[number - 1].messages
        assert f" {len(sent)} all-reduce{'s' * (len(sent) != 1)}, {8 * len(sent)} bytes " in instrument.text
        apart = re.findall(r"([\d.]+) apart", instrument.text)
        assert weights.corner[0] == ("the ranks are equal" if not apart else f"the ranks are {apart[0]} apart")


@pytest.mark.parametrize("settings", ONE_IDEA)
def test_arrows_and_ways_are_those_of_the_update(settings: dict[str, object]) -> None:
    instrument = two_ranks(**settings)
    for now in updates(**settings):
        instrument.turn("update", now.number)
        before, stepped, weights = instrument.drawings()
        assert before.axes == stepped.axes, "arrows of both moments may be compared"
        assert before.axes[0].equal, "arrows keep their angles"
        for drawing, ranks in ((before, now.before), (stepped, now.stepped)):
            for number, rank in enumerate(ranks):
                marks = [mark for mark in drawing.marks if mark.id.startswith(f"rank {number} arrow ")]
                arrows = [mark.points for mark in marks if isinstance(mark, Arrow)]
                steps = [(x1 - x0, y1 - y0) for x0, y0, x1, y1 in arrows]
                assert np.ravel(steps) == pytest.approx(np.ravel([(each.x, each.y) for each in rank.arrows]))
                assert drawing.find(f"rank {number} sum").points == pytest.approx((0, 0, *rank.grad), abs=1e-5)
                assert arrows[-1][2:] == pytest.approx(rank.grad, abs=1e-5), "head to tail to their sum"
        for name, path in (("rank 0", now.paths[0]), ("one process (dashed)", now.alone)):
            assert weights.find(f"{name} way").points == pytest.approx(np.ravel(path))


def test_each_arrow_has_its_name_once() -> None:
    before, stepped, _ = two_ranks(update=2).drawings()
    assert [text for text in before.texts() if "rank" in text] == [".grad of rank 0", ".grad of rank 1"]
    named = ["\u00bd of rank 0", "\u00bd of rank 1", ".grad of both ranks"]
    assert [text for text in stepped.texts() if "rank" in text] == named


def test_where_processes_cannot_run_it_says_so_and_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[object] = []

    def refuse(*arguments: object, **options: object) -> None:
        starts.append(arguments)
        raise PermissionError("Operation not permitted")

    numbers._results.cache_clear()
    shown._updates.cache_clear()
    monkeypatch.setattr(numbers, "launch", refuse)
    try:
        instrument = two_ranks()
        for update in range(1, 6):
            instrument.turn("update", update)
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
