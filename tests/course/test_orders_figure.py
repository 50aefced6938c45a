"""The picture of loops in many orders: every row is there, tells what it was given, and fits on the page."""

from __future__ import annotations

from itertools import permutations

import pytest

from gradlab.course.figures.orders import Trial, orders_figure

WORDS = ("zero", "forward", "backward", "step")


def groups() -> dict[str, list[Trial]]:
    every = [
        Trial(
            order,
            [2.3 - 0.04 * i for i in range(3 * at + 1)],
            f"verdict {at}",
            at % 2 == 0,
            at == 0,
            "loss" if at % 3 else "",
        )
        for at, order in enumerate(permutations(WORDS))
    ]
    return {f"ring {at}": every[at::6] for at in range(6)}


def test_every_order_and_verdict_is_written() -> None:
    figure = orders_figure(groups())
    written = [text.get_text() for text in figure.axes[0].texts]
    assert sum(text in WORDS for text in written) == 24 * 4
    assert written.count("loss") == 16
    assert {f"\N{CHECK MARK} verdict {at}" for at in range(0, 24, 2)} <= set(written)
    assert {f"\N{BALLOT X} verdict {at}" for at in range(1, 24, 2)} <= set(written)


def test_a_verdict_that_all_share_is_written_once() -> None:
    same = [Trial(WORDS, [2.0], "never moves", False) for _ in range(4)]
    written = [text.get_text() for text in orders_figure({"ring": same}).axes[0].texts]
    assert written.count("ring   never moves") == 1
    assert written.count("\N{BALLOT X}") == 4


def test_words_stay_within_the_page_and_apart() -> None:
    figure = orders_figure(groups(), note="curves: loss, all to one scale")
    figure.canvas.draw()
    page = figure.bbox
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1 for box in boxes)
    assert not any(one.overlaps(two) for at, one in enumerate(boxes) for two in boxes[at + 1 :])


def test_curves_share_one_scale_and_a_stopped_one_is_marked() -> None:
    few = {"a": [Trial(WORDS, [2.0, 1.0], "falls", True), Trial(WORDS, [2.0], "ends", False, stopped=True)]}
    lines = orders_figure(few).axes[0].lines
    curves = [line for line in lines if line.get_linewidth() == 2]
    falls = curves[0].get_ydata()
    assert falls[0] < falls[1]  # the axis points down
    marks = [line for line in lines if line.get_marker() == "x"]
    assert len(marks) == 1
    assert marks[0].get_xydata().tolist() == [curves[1].get_xydata()[-1].tolist()]  # type: ignore[union-attr]


def test_one_that_stops_before_its_first_round_is_drawn() -> None:
    assert orders_figure({"a": [Trial(WORDS, [], "crash", False, stopped=True), Trial(WORDS, [1.0], "b", True)]}).axes


@pytest.mark.parametrize("columns", [0, -1])
def test_nothing_to_draw(columns: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        orders_figure(groups(), columns)
    with pytest.raises(ValueError, match="at least one"):
        orders_figure({})
