"""No label overprints another or leaves its panel, whatever is drawn: by widths that FreeType gives for whole texts."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from labels_apart import check_labels, wide
from made_scenes import DEGENERATE, USUAL, curve, random_scene

from gradlab.drawing import draw, draw_comparison, draw_message
from gradlab.drawing.labels import Placer, Spot, shorten, text_width

SIZES = [(260, 200), (400, 260), (340, 420), (900, 380), (1300, 420), (1300, 200)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("some", [USUAL, DEGENERATE], ids=["usual", "degenerate"])
def test_no_label_overprints_or_leaves_the_panel(some: list, size: tuple[int, int]) -> None:
    for scene in some:
        check_labels(draw(scene, *size))


@pytest.mark.parametrize("block", range(10))
def test_no_label_of_random_scenes_does_either(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
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
    first, second, third = (placer.place(f"{at}", spots) for at in range(3))
    assert first is not None
    assert second is not None
    assert (first.y, second.y) == (10, 30)
    assert third is None
    assert placer.place("far", [Spot("word", 99, 30)]) is None


def test_slanted_labels_side_by_side_are_free() -> None:
    placer = Placer(400, 200)
    kept = [
        placer.place(f"{at}", [Spot("backward", x, 20, "end")], angle=50) for at, x in enumerate(range(100, 400, 6))
    ]
    places = [text.x for text in kept if text]
    gaps = np.diff(places) * math.sin(math.radians(50))  # across the direction in which they are written
    assert 11 <= gaps.min() <= gaps.max() <= 22


def test_widths_are_those_of_the_font() -> None:
    for text, bold in (("updates", False), ("backward 0.31", True), ("\u25bc peak 24.1 KiB while step ran", False)):
        assert text_width(text, 12, bold) == pytest.approx(wide(text, 12, bold), abs=2.5)
    assert text_width("\u6f22\u5b57", 10) == 20.0
    cut = shorten("a long name of a module", 60)
    assert cut.startswith("a long")
    assert cut.endswith("\u2026")
    assert text_width(cut) <= 60
    assert shorten("a.long.name", 50, keep_end=True).startswith("\u2026")
    assert shorten("word", 2) == ""
