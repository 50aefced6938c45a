"""Labels of the pictures of memory never lie on what is drawn of the data."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from gradlab.drawing import Drawing, draw
from gradlab.drawing.labels import text_box
from gradlab.memory import CATEGORIES
from gradlab.scenes import Fit, Memory

GIB = 2**30


def made_memory(card: int, peak: int, updates: int) -> Memory:
    """One update or two that rise to a peak in the middle, with activations that are gone at the end."""
    words = ["zero_grad", "output", "backward", "step"] * updates
    rise = [0, 0, 1, 2, 3, 4, 5, 4, 3, 2, 1, 0] * updates
    starts = [12 * u + at for u in range(updates) for at in (0, 2, 7, 11)]
    each = peak // 10
    categories: dict[str, Any] = {
        "weights": [each] * len(rise),
        "gradients": [each * 2 if at % 12 > 7 or at % 12 < 2 else 0 for at in range(len(rise))],
        "activations": [each * 8 * level // 5 for level in rise],
    }
    marks = [(4 * u, u + 1) for u in range(updates)]
    return Memory(words, starts, categories, marks, [""] * len(rise), ("H100", card))


def texts(drawing: Drawing) -> list[tuple[str, Any]]:
    return [
        (mark.id, text_box(mark.text, mark.x, mark.y, mark.anchor, mark.size, mark.bold, mark.angle))
        for mark in drawing.marks
        if hasattr(mark, "text")
    ]


@pytest.mark.parametrize("width", [300, 400, 640, 900])
@pytest.mark.parametrize("card", [2, 5, 8, 12, 15])
@pytest.mark.parametrize("updates", [1, 2])
def test_no_label_lies_on_an_area_of_the_timeline(width: int, card: int, updates: int) -> None:
    drawing = draw(made_memory(card * GIB, 10 * GIB, updates), width, 260)
    bands = [mark for mark in drawing.marks if mark.id in CATEGORIES]
    assert len(bands) == len(CATEGORIES)
    for id, box in texts(drawing):
        for band in bands:
            places = np.array(band.points, dtype=float).reshape(-1, 3)
            inside = places[(places[:, 0] > box.left) & (places[:, 0] < box.right)]
            for _, one, other in inside:
                low, high = max(one, other), min(one, other)
                assert low - high < 0.5 or box.bottom <= high + 0.5 or box.top >= low - 0.5, (id, band.id)


def test_every_category_is_named_beside_the_areas_with_a_patch_that_looks_like_its_own() -> None:
    drawing = draw(made_memory(80 * GIB, 10 * GIB, 1), 400, 260)
    right = max(
        np.nanmax(np.array(drawing.find(name).points).reshape(-1, 3)[:, 0]) for name in ("weights", "gradients")
    )
    for name in ("weights", "gradients", "activations"):
        assert drawing.find(f"name {name}").text == name
        patch, area = drawing.find(f"patch {name}"), drawing.find(name)
        assert min(patch.points[::2]) > right
        assert (patch.fill, patch.hatch) == (area.fill, area.hatch)


@pytest.mark.parametrize("width", [320, 400, 640])
def test_sums_keep_clear_of_the_lines_of_cards(width: int) -> None:
    for total, cards in itertools.product(range(4, 30, 2), ([5, 14, 22, 39], [10, 11, 12, 13])):
        bars = [("before", {"weights": 7 * GIB}), ("now", {"weights": total * GIB})]
        drawing = draw(Fit(bars, [(f"c{at}", size * GIB) for at, size in enumerate(cards)], ""), width, 260)
        lines = [mark.points[1] for mark in drawing.marks if mark.id.startswith("card ") and hasattr(mark, "dash")]
        for id, box in texts(drawing):
            if id.startswith("sum "):
                assert not any(box.top < y < box.bottom for y in lines), (id, total)


def test_bytes_between_two_updates_are_not_called_a_peak() -> None:
    scene = Memory(["now"], [0], {"weights": [2048, 2048], "gradients": [1024, 1024]}, [], ["", ""])
    drawing = draw(scene, 400, 260)
    assert drawing.words == "3 KiB at rest, between two updates"
    assert "3 KiB at rest, between two updates" in drawing.texts()
    assert not any("peak" in text for text in drawing.texts())
