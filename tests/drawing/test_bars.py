"""Bars of the gradient: lengths, shares of batches, and what is said and pressed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradlab.drawing import Drawing, Path, draw
from gradlab.drawing.bars import batches_text, fresh_and_stale, merge_small
from gradlab.scenes import Bar, Bars


def segments(drawing: Drawing, row: int) -> list[Path]:
    return [mark for mark in drawing.marks if mark.id.startswith(f"bar {row}.")]


def extent(mark: Path) -> tuple[float, float]:
    return min(mark.points[::2]), max(mark.points[::2])


def test_lengths_are_as_the_norms() -> None:
    drawing = draw(Bars([Bar("a", 2.0, 1, 0), Bar("b", 0.5, 2, 0), Bar("c", 1.0, 0, 1)], [(3, 4)]))
    wide = []
    for row in range(3):
        ends = [extent(mark) for mark in segments(drawing, row)]
        wide.append(max(b for _, b in ends) - min(a for a, _ in ends))
    assert np.array(wide) / wide[0] == pytest.approx([1, 0.25, 0.5])
    assert [text for text in drawing.texts() if text in ("2", "0.5", "1")].count("0.5") >= 1


def test_stale_batches_come_first_and_look_it() -> None:
    drawing = draw(Bars([Bar("0 Linear", 0.31, 3, 1)], [(38, 41)]))
    parts = segments(drawing, 0)
    assert [mark.press for mark in parts] == ["batch 38", "batch 39", "batch 40", "batch 41"]
    assert [mark.fill for mark in parts] == ["stale", "fresh", "fresh", "fresh"]
    assert [(mark.hatch, mark.dash) for mark in parts[:2]] == [("//", "dashed"), ("", "")]
    assert parts[0].words.startswith("0 Linear: |grad| 0.31, 3 fresh batches, 1 already applied")
    assert (
        len({b - a for a, b in map(extent, parts)}) == 1
        or max(abs((b - a) - (extent(parts[0])[1] - extent(parts[0])[0])) for a, b in map(extent, parts)) < 1e-6
    )


def test_a_batch_is_pressed_only_where_its_number_is_known() -> None:
    drawing = draw(Bars([Bar("a", 1, 1, 1), Bar("b", 1, 1, 0)], [(7, 8)]))
    assert [mark.press for mark in segments(drawing, 0)] == ["batch 7", "batch 8"]
    assert [mark.press for mark in segments(drawing, 1)] == [""]


def test_a_bar_is_shared_out_by_counts() -> None:
    assert fresh_and_stale(Bar("w", 1, 30, 10)) == [(0.0, 0.25, True), (0.25, 1.0, False)]
    assert [part[2] for part in fresh_and_stale(Bar("w", 1, 1, 3))] == [True, True, True, False]
    assert fresh_and_stale(Bar("w", 0, 0, 0)) == []


@pytest.mark.parametrize(("height", "rows"), [(200, 5), (260, 8), (420, 16)])
def test_what_finds_no_row_is_summed_up(height: int, rows: int) -> None:
    many = [Bar(f"{at}.weight", float(at + 1), 1, 0) for at in range(40)]
    shown = merge_small(many, rows)
    assert len(shown) == rows
    assert shown[-1].name == f"{40 - rows + 1} more"
    assert shown[-1].norm == pytest.approx(math.sqrt(sum((at + 1) ** 2 for at in range(rows - 1, 40))))
    names = [mark for mark in draw(Bars(many), 400, height).marks if mark.id.startswith("name ")]
    assert len(names) == rows


def test_batches_in_words() -> None:
    assert batches_text([(38, 41)]) == "holds batches 38\u201341"
    assert batches_text([(7, 7)]) == "holds batch 7"
    assert batches_text([(1, 1), (3, 3), (9, 12)]) == "holds batches 1, \u2026, 9\u201312"
    drawing = draw(Bars([Bar("w", 0, 0, 0)]))
    assert "empty" in drawing.texts()
    assert "holds no batch" in drawing.words
