"""No label overprints another or leaves its panel, whatever is drawn: by widths that FreeType gives for whole texts."""

from __future__ import annotations

import itertools
import math
import random
from functools import cache
from pathlib import Path as FilePath

import matplotlib
import numpy as np
import pytest
from made_scenes import DEGENERATE, USUAL, curve, random_scene
from matplotlib.ft2font import FT2Font

from gradlab.drawing import Drawing, Text, draw, draw_comparison, draw_message
from gradlab.drawing.labels import Placer, Spot
from gradlab.drawing.lettering import shorten, text_width

SIZES = [(260, 200), (400, 260), (340, 420), (900, 380), (1300, 420), (1300, 200)]


@cache
def wide(text: str, size: float, bold: bool) -> float:
    """The width of a text as FreeType lays it out, with kerning."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    font = FT2Font(str(FilePath(matplotlib.get_data_path()) / "fonts" / "ttf" / name))
    font.set_size(100, 72)
    font.set_text(text)
    return float(font.get_width_height()[0]) / 64 * size / 100


def corners(text: Text) -> np.ndarray:
    """The corners of what a text covers: as wide as it is, and as high as capitals with their descenders."""
    long, tall = wide(text.text, text.size, text.bold), 0.95 * text.size
    begin = {"start": 0.0, "middle": -long / 2, "end": -long}[text.anchor]
    box = np.array([[begin, -tall / 2], [begin + long, -tall / 2], [begin + long, tall / 2], [begin, tall / 2]])
    turn = -math.radians(text.angle)  # y goes down
    cos, sin = math.cos(turn), math.sin(turn)
    return box @ np.array([[cos, sin], [-sin, cos]]) + [text.x, text.y]


def overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether one rectangle has a point in the other, by cutting the one with the sides of the other."""
    kept = [tuple(corner) for corner in one]
    for (ax, ay), (bx, by) in zip(other, np.roll(other, -1, axis=0), strict=True):
        inside = [(bx - ax) * (y - ay) - (by - ay) * (x - ax) for x, y in kept]
        cut = []
        for (p, q), (s, t) in zip(
            zip(kept, inside, strict=True), zip(kept[1:] + kept[:1], inside[1:] + inside[:1], strict=True), strict=True
        ):
            if q >= 0:
                cut.append(p)
            if (q >= 0) != (t >= 0):
                share = q / (q - t)
                cut.append((p[0] + share * (s[0] - p[0]), p[1] + share * (s[1] - p[1])))
        kept = cut
        if not kept:
            return False
    across, down = zip(*kept, strict=True)
    return max(across) - min(across) > 0.1 and max(down) - min(down) > 0.1


def check(drawing: Drawing) -> None:
    texts = [mark for mark in drawing.marks if isinstance(mark, Text)]
    boxes = [corners(text) for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert box.min() >= -0.5, text
        assert box[:, 0].max() <= drawing.width + 0.5, text
        assert box[:, 1].max() <= drawing.height + 0.5, text
        assert 11 <= text.size <= 14, text
    for (one, a), (other, b) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        apart = a[:, 0].max() < b[:, 0].min() or b[:, 0].max() < a[:, 0].min()
        if not apart:
            assert not overlap(a, b), f"{one} and {other}"


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("some", [USUAL, DEGENERATE], ids=["usual", "degenerate"])
def test_no_label_overprints_or_leaves_the_panel(some: list, size: tuple[int, int]) -> None:
    for scene in some:
        check(draw(scene, *size))


@pytest.mark.parametrize("block", range(10))
def test_no_label_of_random_scenes_does_either(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        chance = random.Random(seed)
        check(draw(random_scene(seed), chance.randint(260, 1300), chance.randint(200, 420)))


def test_nor_in_a_comparison_or_a_message() -> None:
    for count in range(8):
        names = ["zero_grad", "none", "a recipe with a name that is far too long for its place", "d", "e", "f", "g"]
        curves = {name: curve(90 - at, broken=40 if at == 3 else None) for at, name in enumerate(names[:count])}
        for size in [(640, 340), (400, 260), (900, 400)]:
            check(draw_comparison(curves, "bowl: loss", *size))
    check(draw_message("there is no memory left for this picture " * 4, "memory"))


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
