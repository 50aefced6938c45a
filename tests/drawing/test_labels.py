"""No words overprint others or leave their panel, whatever is painted; names keep clear of arrows and of the axes."""

from __future__ import annotations

import itertools
import os
import random
from typing import Any

import numpy as np
import pytest
from labels_apart import check_labels, painted, texts_of
from made_scenes import DEGENERATE, USUAL, curve, random_arrows, random_scene
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from sampling import every

from gradlab import Recipe
from gradlab.drawing import (
    AXES_EDGE,
    Area,
    Axes,
    Axis,
    AxisSpan,
    Drawing,
    Key,
    Line,
    Listing,
    Text,
    draw,
    draw_comparison,
)  # fmt: skip
from gradlab.drawing.fonts import fitting, shorten, text_width, wrapped
from gradlab.scenes import Arrows

SIZES = [(260, 200), (465, 260), (640, 340), (930, 260)]
SCENES = [*USUAL, *DEGENERATE, *map(random_scene, range(2000 if os.environ.get("GRADLAB_NIGHTLY") else 60))]


@pytest.mark.parametrize("scene", every(4, SCENES, 2), ids=lambda scene: type(scene).__name__)
def test_no_words_overprint_others_or_leave_the_panel(scene: Any) -> None:
    drawing = draw(scene)
    for size in SIZES[:: 1 if scene in USUAL else 2]:
        check_labels(drawing, *size)


@pytest.mark.slow
def test_nor_in_a_comparison_or_below_an_axis() -> None:
    for count in range(8):
        names = ["zero_grad", "none", "a recipe with a name that is far too long for its place", "d", "e", "f", "g"]
        curves = {name: curve(90 - i, broken=40 if i == 3 else None) for i, name in enumerate(names[:count])}
        for size in SIZES:
            check_labels(draw_comparison(curves, "bowl: loss"), *size)
    labels = ["zero_grad", "forward", "loss.backward()", "step", "a statement that is far too long"]
    for ticks, bracket in itertools.product(("number", "slanted"), (False, True)):
        spans = [AxisSpan(i, i + 1, (word, word[:4]), i % 2) for i, word in enumerate(labels)]
        spans += [AxisSpan(0, 3, ("repeated 16 times", "16 times"), bracket=True)] * bracket
        axis = Axis(0, 5, words="statements", ticks=ticks, spans=tuple(spans))
        check_labels(Drawing("memory", [Line("l", (0, 0, 5, 1))], (Axes(axis, Axis(words="bytes")),)), 465, 260)
    key = (
        Key(("a long name of a thing", "thing"), "weights"),
        Key(("another long name", "other"), "reused", hatch="//"),
    )
    full = Drawing("title " * 9, [], (Axes(caption="above"),), key=key, corner=("now",), notes=(("a note " * 9, "b"),))
    for size in SIZES:
        check_labels(full, *size)
        check_labels(
            Drawing("n", [Line("l", (0, 0, 1, 1))], notice="this sentence is long enough for two lines " * 2), *size
        )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_names_of_arrows_lie_on_no_arrow_and_within_the_axes(seed: int) -> None:
    scene = random_arrows(random.Random(seed))
    drawing = draw(scene)
    figure = painted(drawing, *SIZES[seed % 4])
    (plot,) = figure.axes
    names = {text for mark in drawing.marks if mark.id.startswith("arrow name") for text in mark.texts}  # type: ignore[attr-defined]
    patches = [patch for patch in plot.findobj(PathPatch) if np.shape(patch.get_path().vertices) == (8, 2)]
    assert len(patches) <= 1 + len(scene.arrows)
    for text, corners in texts_of(figure).items():
        if text.get_text() not in names or text.axes is not None:
            continue
        left, bottom = plot.transAxes.transform((0, 0))
        assert corners[:, 0].min() >= left
        assert corners[:, 1].min() >= bottom
        for patch in patches:
            arrow = Outline(patch.get_transform().transform(patch.get_path().vertices))
            assert not arrow.intersects_path(Outline(corners, closed=False), filled=True), text


def test_every_arrow_that_is_long_enough_is_named() -> None:
    drawing = draw(next(scene for scene in USUAL if isinstance(scene, Arrows)))
    written = {text.get_text().partition(" \u00d7")[0] for text in texts_of(painted(drawing, 640, 340))}
    assert {"2 batches", "3", "batch 4"} <= written


def test_a_text_takes_the_place_that_hides_least() -> None:
    def written(*marks: Any, size: tuple[int, int] = (300, 200)) -> dict[str, np.ndarray]:
        bare = Axes(Axis(0, 10, ticks="none"), Axis(0, 10, ticks="none"))
        return {text.get_text(): box for text, box in texts_of(painted(Drawing("", marks, (bare,)), *size)).items()}

    line = Line("line", (0, 5, 10, 5))
    above = written(line, Text("a", ("word",), 5, 5, where="right above"))["word"]
    assert above[:, 1].min() > 100 - 11  # the pixel row of the line is at about 92 from below
    assert "word" not in written(line, Text("a", ("word",), 5, 5, where="center", clear=True))
    assert "short" in written(Text("a", ("a text that is far too long for this panel and more", "short"), 5, 5))
    edge = written(Text("a", ("edge",), AXES_EDGE, -AXES_EDGE, where="left"))["edge"]
    assert edge[:, 0].max() > 300 - 14 - 12
    beside = written(line, Text("a", ("name of it",), of="line", where="beside"))["name of it"]
    assert min(abs(beside[:, 1] - 92)) < 12
    two = written(*(Text(f"{i}", (f"word {i}",), 5, 5, where="margin") for i in range(2)))
    assert abs(two["word 0"][0, 1] - two["word 1"][0, 1]) >= 14
    assert "gone" not in written(Text("a", ("gone",), of="nothing"))
    assert written(Area("a", (0, 0, 9, 0, 9, 9, 0, 9), fill="ink"), Text("t", ("on it",), 5, 5, where="center"))


def test_texts_are_cut_and_broken_by_the_widths_of_the_font() -> None:
    for text, bold in (("updates", False), ("backward 0.31", True), ("\u25bc peak 24.1 KiB while step ran", False)):
        drawing = Drawing(text) if bold else Drawing("", notes=((text,),))
        (box,) = (box for each, box in texts_of(painted(drawing, 600, 200)).items() if each.get_text() == text)
        size = 14 if bold else 12
        assert text_width(text, size, bold) == pytest.approx(np.ptp(box[:, 0]), abs=2.5)
    cut = shorten("a long name of a module", 60)
    assert (cut[:6], cut[-1]) == ("a long", "\u2026")
    assert text_width(cut) <= 60
    assert shorten("word", 2) == ""
    assert fitting(("a long name", "name"), 50) == "name"
    assert wrapped("some words in lines", 90) == ["some words in", "lines"]


SOURCES = [Recipe().source(), Recipe(optimizer="adamw", accumulate=4, amp="fp16", clip=1.0).source(), "a" * 200]


@pytest.mark.parametrize("width", [300, 390, 600])
@pytest.mark.parametrize("source", SOURCES)
def test_every_line_of_a_loop_is_whole_and_inside_its_frame(source: str, width: int) -> None:
    listing = Listing(source, width, lit=[1], changed=[2], sentences=["a sentence that is broken into lines " * 4])
    for line, (_, pieces) in zip(source.splitlines(), listing.lines, strict=True):
        assert "".join([pieces[0], *(piece.lstrip() for piece in pieces[1:])]) == line
        ends = [f"{above[-1]}{below.lstrip()[:1]}" for above, below in itertools.pairwise(pieces)]
        assert "()" not in ends  # a reader would not break there
    boxes = np.array([*texts_of(painted(listing, width, listing.height)).values()])
    assert (boxes.min(axis=(0, 1)) >= 0).all()
    assert (boxes.max(axis=(0, 1)) <= [width, listing.height]).all()
