"""No label overprints another or leaves its panel, whatever is drawn: by widths that FreeType gives for whole texts.

Nor does one lie on what is drawn of bytes; and a line of code keeps inside its frame.
"""

from __future__ import annotations

import itertools
import os
import random
import re
from typing import Any

import numpy as np
import pytest
from labels_apart import check_labels, wide
from made_scenes import DEGENERATE, USUAL, curve, random_scene

from gradlab import Recipe
from gradlab.drawing import (
    CodeText,
    Drawing,
    Spot,
    draw,
    draw_comparison,
    draw_loop,
    draw_message,
    shorten,
    spread_labels,
    text_width,
)
from gradlab.drawing.labels import Placer, text_box
from gradlab.memory import CATEGORIES
from gradlab.scenes import Fit, Memory

GIB = 2**30
SIZES = [(260, 200), (340, 420), (400, 260), (1300, 200)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_no_label_overprints_or_leaves_the_panel(size: tuple[int, int]) -> None:
    for scene in [*USUAL, *DEGENERATE]:
        check_labels(draw(scene, *size))


@pytest.mark.parametrize("block", range(20 if os.environ.get("GRADLAB_NIGHTLY") else 3))
def test_no_label_of_random_scenes_does_either(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        chance = random.Random(seed)
        check_labels(draw(random_scene(seed), chance.randint(260, 1300), chance.randint(200, 420)))


def test_nor_in_a_comparison_or_a_message() -> None:
    for count in range(8):
        names = ["zero_grad", "none", "a recipe with a name that is far too long for its place", "d", "e", "f", "g"]
        curves = {name: curve(90 - at, broken=40 if at == 3 else None) for at, name in enumerate(names[:count])}
        for size in [(640, 340), (400, 260), (900, 400)]:
            check_labels(draw_comparison(curves, "bowl: loss", *size))
    check_labels(draw_message("there is no memory left for this picture " * 4, "memory"))


def test_the_first_free_spot_is_taken_and_none_is_none() -> None:
    placer = Placer(100, 40)
    spots = [Spot("word", 10, 10), Spot("word", 10, 30)]
    placed = [placer.place(f"{at}", spots) for at in range(3)]
    assert [text and text.y for text in placed] == [10, 30, None]
    assert placer.place("far", [Spot("word", 99, 30)]) is None


def test_widths_are_those_of_the_font() -> None:
    for text, bold in (("updates", False), ("backward 0.31", True), ("\u25bc peak 24.1 KiB while step ran", False)):
        assert text_width(text, 12, bold) == pytest.approx(wide(text, 12, bold), abs=2.5)
    assert text_width("\u6f22\u5b57", 10) == 20.0
    cut = shorten("a long name of a module", 60)
    assert (cut[:6], cut[-1]) == ("a long", "\u2026")
    assert text_width(cut) <= 60
    assert shorten("a.long.name", 50, keep_end=True).startswith("\u2026")
    assert shorten("word", 2) == ""


def test_labels_are_spread_apart_inside_and_as_little_as_can_be() -> None:
    places = spread_labels({"a": 3.0, "b": 4.0, "c": 99.0, "d": 100.0, "e": 50.0}, 16, 100)
    assert places == {"a": 3.0, "b": 19.0, "e": 50.0, "c": 84.0, "d": 100.0}


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
@pytest.mark.parametrize("updates", [1, 2])
def test_no_label_lies_on_an_area_of_the_timeline(width: int, updates: int) -> None:
    for card in (2, 5, 8, 12, 15):
        drawing = draw(made_memory(card * GIB, 10 * GIB, updates), width, 260)
        bands = [mark for mark in drawing.marks if mark.id in CATEGORIES]
        assert len(bands) == len(CATEGORIES)
        for (id, box), band in itertools.product(texts(drawing), bands):
            places = np.array(band.points, dtype=float).reshape(-1, 3)
            inside = places[(places[:, 0] > box.left) & (places[:, 0] < box.right), 1:]
            low, high = inside.max(axis=1), inside.min(axis=1)
            apart = (low - high < 0.5) | (box.bottom <= high + 0.5) | (box.top >= low - 0.5)
            assert apart.all(), (id, band.id)


def test_every_category_is_named_with_a_patch_of_its_area() -> None:
    drawing = draw(made_memory(80 * GIB, 10 * GIB, 1), 400, 260)
    right = max(np.nanmax(drawing.find(name).points[::3]) for name in ("weights", "gradients"))
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
            assert not (id.startswith("sum ") and any(box.top < y < box.bottom for y in lines)), (id, total)


SOURCES = [Recipe().source(), Recipe(optimizer="adamw", accumulate=4, amp="fp16", clip=1.0).source(), "a" * 200]


@pytest.mark.parametrize("width", [300, 390, 600])
@pytest.mark.parametrize("source", SOURCES)
def test_every_line_of_a_loop_is_whole_and_inside_its_frame(source: str, width: int) -> None:
    codes: dict[int, list[CodeText]] = {}
    for mark in draw_loop(source, [], [], [], width).marks:
        if isinstance(mark, CodeText) and (found := re.fullmatch(r"code (\d+) \d+", mark.id)):
            codes.setdefault(int(found[1]), []).append(mark)
    for number, line in enumerate(source.splitlines(), 1):
        pieces = [mark.text for mark in codes[number]]
        assert "".join([pieces[0], *(piece.lstrip() for piece in pieces[1:])]) == line
        ends = [f"{above[-1]}{below.lstrip()[:1]}" for above, below in itertools.pairwise(pieces)]
        assert "()" not in ends  # a reader would not break there
        # Letters of code are at least as wide as these.
        assert all(mark.x + text_width("n" * len(mark.text), 11.0) <= width for mark in codes[number])
