"""The memory panel against the numbers that it shows: bytes at points, words, what is merged and what is cut."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from gradlab.drawing import Drawing, draw, stacked
from gradlab.drawing.memory import layout_statements, repeated
from gradlab.memory import CATEGORIES
from gradlab.scenes import Memory

MIB = 2**20


def update(window: int = 1, blocks: int = 3, peak: int = 8 * MIB) -> tuple[list[str], list[int], list[int], list[str]]:
    """One update of a model of some blocks: labels, points a statement, activations at every point, modules."""
    statements, counts, bytes_, modules = ["zero_grad"], [2], [0, 0], ["", ""]
    up = np.linspace(0, peak, 2 * blocks + 1)[1:].astype(int).tolist()
    names = [f"blocks.{i // 2}" for i in range(2 * blocks)]
    for _ in range(window):
        statements += ["x, y", "output", "loss", "backward"]
        counts += [1, 2 * blocks, 1, 2 * blocks]
        bytes_ += [0, *up, up[-1], *up[-2::-1], 0]
        modules += ["", *names, "", *names[::-1]]
    return [*statements, "step"], [*counts, 2], [*bytes_, 0, 0], [*modules, "", ""]


def memory(updates: int = 1, window: int = 1, blocks: int = 3, peak: int = 8 * MIB, **more: Any) -> Memory:
    """A scene of some updates with flat weights and activations that rise and fall."""
    statements, counts, activations, modules = update(window, blocks, peak)
    starts = [0, *itertools.accumulate(counts * updates)][:-1]
    categories = {"weights": [2 * MIB] * len(activations) * updates, "activations": activations * updates}
    numbers = [(i * len(statements), 40 + i) for i in range(updates)]
    return Memory(statements * updates, starts, categories, numbers, modules * updates, **more)


def changed(scene: Memory, name: str, bytes_at: dict[int, int]) -> Memory:
    """The scene with other bytes of a category at some points."""
    values = list(scene.categories[name])
    for index, size in bytes_at.items():
        values[index] = size
    return dataclasses.replace(scene, categories={**scene.categories, name: values})


def band(drawing: Drawing, name: str) -> np.ndarray:
    """Triples of a category's area: x, bytes at its lower edge, bytes at its upper edge."""
    return np.asarray(drawing.find(name).points, dtype=float).reshape(-1, 3)


def ids(drawing: Drawing, begin: str) -> list[str]:
    return [mark.id for mark in drawing.marks if mark.id.startswith(begin)]


def words_below(drawing: Drawing) -> list[str]:
    return [span.texts[0] for span in drawing.axes[0].x.spans]


def test_every_point_is_drawn_at_its_bytes() -> None:
    scene = memory(updates=2)
    area = band(draw(scene), "activations")
    shown = np.isfinite(area).all(axis=1)
    totals = [sum(point) for point in zip(*scene.categories.values(), strict=True) if point[1] > 0]
    assert area[shown, 2].tolist() == np.repeat(totals, 2).tolist(), "each point has a left and a right end"
    assert (area[shown, 1] == 2 * MIB).all(), "they stand on the weights"
    assert (np.diff(area[shown, 0]) > -1e-9).all()


@pytest.mark.parametrize(
    ("statement", "module", "text"),
    [
        ("backward", "blocks.2", "while backward ran, in blocks.2"),
        ("step", "", "while step ran"),
        ("output", "1", "at output, in module 1"),
    ],
)
def test_the_peak_is_named_with_its_cause(statement: str, module: str, text: str) -> None:
    sizes = {"weights": [5, 5, 5, 5], "activations": [0, 1, 407, 2]}
    modules = ["", "", module, "elsewhere"]
    drawing = draw(Memory(["zero_grad", statement, "last"], [0, 1, 3], sizes, [(0, 7)], modules))
    assert f"\u25bc peak 412 B {text}" in drawing.texts()
    assert drawing.words.startswith(f"Peak 412 B {text}")
    area = band(drawing, "activations")
    left, right = area[area[:, 2] == 412, 0]
    x, y = drawing.find("peaks").points
    assert x == pytest.approx((left + right) / 2)
    assert 412 < y < 440


def test_a_long_module_is_cut_from_the_left() -> None:
    scene = Memory(["backward"], [0], {"weights": [5]}, [(0, 1)], ["layers.11.attention"])
    ends = [text.removeprefix("\u25bc peak 5 B while backward ran") for text in draw(scene).notes[0]]
    assert ends == [", in layers.11.attention", ", in \u202611.attention", ", in \u2026attention", ""]


def test_words_are_about_the_newest_update() -> None:
    scene = changed(memory(updates=3), "activations", {5: 30 * MIB, -3: 20 * MIB})  # the newest at the end of backward
    drawing = draw(scene)
    assert "\u25bc peak 22 MiB while backward ran, in blocks.0" in drawing.texts()
    assert [drawing.find(f"peak {i}").texts[0] for i in range(3)] == ["32 MiB", "10 MiB", "22 MiB"]
    assert [drawing.find(f"update {i}").texts[0] for i in range(3)] == ["update 40", "update 41", "update 42"]
    assert len(drawing.find("peaks").points) == 6
    assert len(ids(drawing, "divider")) == 2


def test_each_statement_says_what_it_holds() -> None:
    scene = Memory(["output", "backward"], [0, 2], {"weights": [5, 5, 5, 5], "activations": [7, 2, 0, 90]}, [(0, 41)])
    drawing = draw(scene)
    first, second = (drawing.find(f"at {i}") for i in (0, 1))
    assert first.words == "output: weights 5 B, activations 7 B"
    assert second.words == "backward: weights 5 B, activations 90 B"
    x = drawing.axes[0].x
    assert (first.points[0], first.points[4], second.points[4]) == pytest.approx((x.low, second.points[0], x.high))
    assert [(span.low, span.texts) for span in x.spans] == [(0, ("output",)), (first.points[4], ("backward",))]


@pytest.mark.parametrize(
    ("more", "lines", "texts"),
    [
        ({"capacity": ("T4", 15 * MIB)}, [15], {"T4 15 MiB"}),  # the peak is 10 MiB
        ({"capacity": ("T4", 15 * 1024 * MIB)}, [], {"T4 holds 15 GiB: 0.07 % used at the peak"}),
        ({"capacity": ("T4", 5 * MIB)}, [5], {"T4 holds 5 MiB: the peak needs 2 times that"}),
        ({"allocated": 11 * MIB, "reserved": 14 * MIB}, [11, 14], {"allocated 11 MiB", "reserved 14 MiB"}),
        ({"reserved": 22 * MIB, "note": "1 in 12"}, [], {"reserved 22 MiB \u00b7 1 in 12"}),
        ({"allocated": 11 * MIB, "note": "1 update in 12 is watched"}, [11], {"1 update in 12 is watched"}),
    ],
)
def test_a_level_in_sight_is_a_line_and_one_far_above_is_words(
    more: dict[str, Any], lines: list[float], texts: set[str]
) -> None:
    drawing = draw(memory(**more))
    levels = [drawing.find(id).points[1] for id in ids(drawing, "level ") if "name" not in id]
    assert levels == [line * MIB for line in lines]
    assert max(levels, default=0) < drawing.axes[0].y.high
    assert texts <= set(drawing.texts())
    assert all(text in drawing.words for text in texts if " holds " in text)


def test_micro_batches_share_a_bracket() -> None:
    drawing = draw(memory(window=16))
    bracket = next(span for span in drawing.axes[0].x.spans if span.bracket)
    assert bracket.texts == ("16 micro-batches", "16 batches", "16 \u00d7", "16")
    assert words_below(drawing) == ["zero_grad", "step", "16 micro-batches"]
    assert (bracket.low, bracket.high) == (drawing.find("at 0").points[4], drawing.find("at 64").points[4])
    assert not any(span.bracket for span in draw(memory(window=1)).axes[0].x.spans)


def test_words_that_would_crowd_are_slanted() -> None:
    few = Memory(["zero_grad", "backward"], [0, 1], {"weights": [1, 2]}, [(0, 1)])
    ticks = [draw(scene).axes[0].x.ticks for scene in (few, memory(updates=3), memory(updates=2, window=16))]
    assert ticks == ["none", "slanted", "none"]


def test_two_thousand_points_show_their_peak() -> None:
    scene = changed(memory(updates=2, blocks=125), "weights", {-300: 50 * MIB})  # a fraction of a pixel wide
    drawing = draw(scene)
    top = 50 * MIB + scene.categories["activations"][-300]
    assert np.nanmax(band(drawing, "activations")[:, 2]) == top
    assert len(band(drawing, "weights")) <= 2 * 401


@hypothesis.given(st.lists(st.sampled_from("abc"), max_size=14))
def test_the_longest_repetition_is_found(labels: list[str]) -> None:
    best = 0
    for start, length, count in itertools.product(range(len(labels)), range(1, 6), range(3, 15)):
        block, run = labels[start : start + length], labels[start : start + length * count]
        if start + length * count <= len(labels) and block * count == run:
            best = max(best, length * count)
    start, length, count = repeated(tuple(labels))
    assert length * count == best
    assert labels[start : start + length] * count == labels[start : start + length * count]


@hypothesis.given(
    st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=60),
    st.sets(st.integers(1, 59), max_size=2),
)
def test_statements_share_the_width(statements: list[tuple[int, bool]], cuts: set[int]) -> None:
    counts, moved = [count for count, _ in statements], [moves and count > 0 for count, moves in statements]
    levels = list(itertools.accumulate(moved))  # bytes change where a statement moves them
    points = np.repeat(levels, counts).astype(float)[None]
    starts = [0, *itertools.accumulate(counts)][:-1]
    scene = Memory(["a"] * len(counts), starts, {}, [(cut, cut) for cut in sorted({0, *cuts}) if cut < len(counts)])
    layout = layout_statements(scene, points)
    edges = [edge for span in layout.statements for edge in span]
    assert edges == sorted(edges)
    assert (edges[0], edges[-1]) == (0, layout.wide)
    wide = [b - a for a, b in layout.statements]
    moved[next((i for i, count in enumerate(counts) if count), 0)] |= sum(counts) > 0  # the first point is news
    for index, following in itertools.pairwise(range(len(counts))):
        if moved[index] and (not moved[following] or counts[index] > counts[following]):
            assert wide[index] > wide[following]
    assert (np.diff(layout.left) > 0).all()
    assert sum(points.stop - points.start for _, points in layout.updates) == sum(counts)


def test_categories_stack_in_one_order_and_strangers_are_other() -> None:
    edges = stacked({"other": [1, 1], "odd": [2, 2], "weights": [10, 20]}, 2)
    assert list(edges) == list(CATEGORIES)
    assert edges["weights"][1].tolist() == [10, 20]
    assert [edge.tolist() for edge in edges["other"]] == [[10, 20], [13, 23]]
    drawing = draw(Memory(["a", "b"], [0, 1], {name: [9, 9] for name in CATEGORIES}, [(0, 1)]))
    hatches = [drawing.find(name).hatch for name in ("optimizer", "inputs", "gradients", "activations")]
    assert hatches == ["..", "--", "", "\\\\"]
    assert set(CATEGORIES) <= set(drawing.texts())
    thin = draw(Memory(["a", "b"], [0, 1], {"weights": [900, 900], "other": [2, 2]}, [(0, 1)]))
    assert {"weights", "other"} & set(thin.texts()) == {"weights"}
