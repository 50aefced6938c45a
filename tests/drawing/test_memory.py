"""The memory panel against the numbers that it was given: heights, words, what is merged and what is cut."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradlab.drawing import Drawing, draw
from gradlab.drawing.memory import CATEGORY_STYLES, spread_labels, stacked
from gradlab.drawing.statements import bounds, decimate, keep_recent, layout_statements, repeated
from gradlab.formatting import bytes_text
from gradlab.scenes import Memory, peak_location, percent, share_of_gpu

MIB = 2**20
LEFT, RIGHT = 62.0, 302.0  # the axes in a panel that is 400 pixels wide


def update(window: int = 1, blocks: int = 3, peak: int = 8 * MIB) -> tuple[list[str], list[int], list[int], list[str]]:
    """One update of a model of some blocks: words, points a statement, activations at every point, modules."""
    words, counts, bytes_, modules = ["zero_grad"], [2], [0, 0], ["", ""]
    up = np.linspace(0, peak, 2 * blocks + 1)[1:].astype(int).tolist()
    names = [f"blocks.{at // 2}" for at in range(2 * blocks)]
    for _ in range(window):
        words += ["x, y", "output", "loss", "backward"]
        counts += [1, 2 * blocks, 1, 2 * blocks]
        bytes_ += [0, *up, up[-1], *up[-2::-1], 0]
        modules += ["", *names, "", *names[::-1]]
    return [*words, "step"], [*counts, 2], [*bytes_, 0, 0], [*modules, "", ""]


def memory(updates: int = 1, window: int = 1, blocks: int = 3, peak: int = 8 * MIB, **more: Any) -> Memory:
    """A scene of some updates with flat weights and activations that rise and fall."""
    words, counts, activations, modules = update(window, blocks, peak)
    starts = [0, *itertools.accumulate(counts * updates)][:-1]
    categories = {"weights": [2 * MIB] * len(activations) * updates, "activations": activations * updates}
    numbers = [(at * len(words), 40 + at) for at in range(updates)]
    return Memory(words * updates, starts, categories, numbers, modules * updates, **more)


def band(drawing: Drawing, name: str) -> np.ndarray:
    """Triples of a category's area: x, y of its lower edge, y of its upper edge."""
    return np.asarray(drawing.find(name).points, dtype=float).reshape(-1, 3)


def per_byte(drawing: Drawing) -> float:
    """Pixels a byte, from the weights, which are 2 MiB thick."""
    low, high = band(drawing, "weights")[0, 1:]
    return float(low - high) / (2 * MIB)


def ids(drawing: Drawing, begin: str) -> list[str]:
    return [mark.id for mark in drawing.marks if mark.id.startswith(begin)]


@pytest.mark.parametrize("size", [(400, 260), (900, 380)])
def test_every_point_is_drawn_as_high_as_its_bytes(size: tuple[int, int]) -> None:
    scene = memory(updates=2)
    drawing = draw(scene, *size)
    weights, area = band(drawing, "weights"), band(drawing, "activations")
    ground = weights[0, 1]
    scale = per_byte(drawing)
    sound = np.isfinite(area).all(axis=1)
    drawn = [bytes_ for bytes_, _ in itertools.groupby(((ground - area[sound, 2]) / scale).tolist())]
    totals = [sum(point) for point in zip(*scene.categories.values(), strict=True) if point[1] > 0]
    wanted = [total for total, _ in itertools.groupby(totals)]
    assert drawn == pytest.approx(wanted, abs=0.3 / scale)
    assert (ground - area[sound, 1]) / scale == pytest.approx(2 * MIB, abs=0.3 / scale)


@pytest.mark.parametrize(
    ("statement", "module", "said"),
    [
        ("backward", "blocks.2", "while backward ran, in blocks.2"),
        ("step", "", "while step ran"),
        ("output", "1", "at output, in module 1"),
    ],
)
def test_the_peak_is_told_with_its_cause(statement: str, module: str, said: str) -> None:
    scene = Memory(
        ["zero_grad", statement, "last"],
        [0, 1, 3],
        {"weights": [5, 5, 5, 5], "activations": [0, 1, 407, 2]},
        [(0, 7)],
        ["", "", module, "elsewhere"],
    )
    drawing = draw(scene)
    assert f"\u25bc peak 412 B {said}" in drawing.texts()
    assert drawing.words.startswith(f"Peak 412 B {said}")
    x, y = drawing.find("peaks").points
    area = band(drawing, "activations")
    left, right = area[area[:, 2] == np.nanmin(area[:, 2]), 0]
    assert (x, y) == pytest.approx(((left + right) / 2, np.nanmin(area[:, 2]) - 5), abs=0.3)


def test_the_words_are_about_the_newest_update_and_each_peak_has_its_mark() -> None:
    scene = memory(updates=3)
    activations = list(scene.categories["activations"])
    activations[5] = 30 * MIB  # in the oldest
    activations[-3] = 20 * MIB  # in the newest: the end of backward
    drawing = draw(dataclasses.replace(scene, categories=scene.categories | {"activations": activations}))
    texts = drawing.texts()
    assert "\u25bc peak 22 MiB while backward ran, in blocks.0" in texts
    assert [drawing.find(f"peak {at}").text for at in range(3)] == ["32 MiB", "10 MiB", "22 MiB"]
    assert [drawing.find(f"update {at}").text for at in range(3)] == ["update 40", "update 41", "update 42"]
    assert len(drawing.find("peaks").points) == 6
    assert len(ids(drawing, "divider")) == 2


def test_each_statement_says_what_it_holds() -> None:
    scene = Memory(["output", "backward"], [0, 2], {"weights": [5, 5, 5, 5], "activations": [7, 2, 0, 90]}, [(0, 41)])
    drawing = draw(scene)
    assert drawing.find("at 0").words == "output of update 41: weights 5 B, activations 7 B"
    assert drawing.find("at 1").words == "backward of update 41: weights 5 B, activations 90 B"
    left, right = (drawing.find(f"at {at}").points for at in (0, 1))
    assert (left[0], left[2], right[2]) == (LEFT, right[0], RIGHT)


def levels(drawing: Drawing) -> list[float]:
    """The bytes at which there is a line from side to side."""
    ground = band(drawing, "weights")[0, 1]
    return [
        (ground - drawing.find(id).points[1]) / per_byte(drawing) for id in ids(drawing, "level ") if "name" not in id
    ]


def test_a_card_in_sight_is_a_line_and_one_far_above_is_words() -> None:
    close = draw(memory(capacity=("T4", 15 * MIB)))  # the peak is 10 MiB
    assert levels(close) == pytest.approx([15 * MIB], rel=0.02)
    assert "T4 15 MiB" in close.texts()
    far = draw(memory(capacity=("T4", 15 * 1024 * MIB)))
    assert levels(far) == []
    assert "T4 holds 15 GiB: 0.07 % used at the peak" in far.texts()
    assert "T4 holds 15 GiB" in far.words
    over = draw(memory(capacity=("T4", 5 * MIB)))
    assert levels(over) == pytest.approx([5 * MIB], rel=0.02)
    assert "T4 holds 5 MiB: the peak needs 2 times that" in over.texts()


def test_what_the_allocator_holds_is_drawn_or_said() -> None:
    close = draw(memory(allocated=11 * MIB, reserved=14 * MIB, note="1 update in 12 is watched"))
    assert {"allocated 11 MiB", "reserved 14 MiB", "1 update in 12 is watched"} <= set(close.texts())
    assert levels(close) == pytest.approx([11 * MIB, 14 * MIB], rel=0.02)
    far = draw(memory(reserved=22 * MIB, note="1 update in 12 is watched"))
    assert "reserved 22 MiB \u00b7 1 update in 12 is watched" in far.texts()
    assert levels(far) == []


def test_micro_batches_share_a_bracket() -> None:
    drawing = draw(memory(window=16))
    assert {"16 micro-batches", "zero_grad", "step"} <= set(drawing.texts())
    bracket = np.asarray(drawing.find("brackets").points).reshape(-1, 2)
    first, last = drawing.find("at 0"), drawing.find("at 64")
    assert (bracket[0, 0], bracket[-1, 0]) == pytest.approx((first.points[2] + 1, last.points[2] - 1))
    assert not ids(draw(memory(window=1)), "brackets")


def test_two_thousand_points_show_their_peak() -> None:
    scene = memory(updates=2, blocks=125)
    weights = [2 * MIB] * len(scene.modules)
    weights[-300] = 50 * MIB  # in an interval a fraction of a pixel wide
    drawing = draw(dataclasses.replace(scene, categories=scene.categories | {"weights": weights}))
    at = len(weights) - 300
    top = weights[at] + scene.categories["activations"][at]
    assert (ground := band(drawing, "weights")[0, 1]) > 100
    assert (ground - np.nanmin(band(drawing, "activations")[:, 2])) / per_byte(drawing) == pytest.approx(top, rel=0.05)
    assert drawing.find("cause").text.startswith(f"\u25bc peak {bytes_text(top)}")
    assert len(band(drawing, "weights")) < 4 * 400


def test_a_long_module_name_is_cut_from_the_left() -> None:
    name = "transformer.layers.11.self_attention.heads.output_projection.lora_A"
    scene = memory(peak=8 * MIB)
    (cause,) = (t for t in draw(dataclasses.replace(scene, modules=[name] * 99)).texts() if t.startswith("\u25bc"))
    assert "\u2026" in cause
    assert cause.endswith("lora_A")


def test_categories_are_told_apart_without_their_colours() -> None:
    sizes = {name: [9, 9] for name in CATEGORY_STYLES}
    drawing = draw(Memory(["a", "b"], [0, 1], sizes, [(0, 1)]))
    hatches = [drawing.find(name).hatch for name in ("gradients", "optimizer", "activations", "inputs")]
    assert hatches == ["//", "..", "\\\\", "--"]
    assert set(CATEGORY_STYLES) <= set(drawing.texts())


@given(st.lists(st.sampled_from("abc"), max_size=14))
def test_the_longest_repetition_is_found(words: list[str]) -> None:
    best = 0
    for at, length, count in itertools.product(range(len(words)), range(1, 6), range(3, 15)):
        if at + length * count <= len(words) and words[at : at + length] * count == words[at : at + length * count]:
            best = max(best, length * count)
    found = repeated(words)
    assert (found[1] * found[2] if found else 0) == best
    if found:
        at, length, count = found
        assert words[at : at + length] * count == words[at : at + length * count]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=60),
    st.sets(st.integers(1, 59), max_size=2),
)
def test_statements_share_the_width(statements: list[tuple[int, bool]], cuts: set[int]) -> None:
    counts, moved = [count for count, _ in statements], [yes and count > 0 for count, yes in statements]
    first = sorted({0} | {cut for cut in cuts if cut < len(counts)})
    where = layout_statements([0, *itertools.accumulate(counts)], first, moved, 242.0)
    assert where.statements[0][0] == 0
    assert where.statements[-1][1] == pytest.approx(242)
    edges = [edge for place in where.statements for edge in place]
    assert edges == sorted(edges)
    wide = [b - a for a, b in where.statements]
    assert all(w > 0 for w in wide)
    for one, other in itertools.pairwise(range(len(counts))):
        if moved[one] and moved[other] and counts[one] > counts[other] > 0:
            assert wide[one] > wide[other]
        if moved[one] and not moved[other]:
            assert wide[one] > wide[other]
    assert (np.diff(where.left) > 0).all()
    assert sum(b - a for a, b in where.points) == sum(counts)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=400), st.floats(20, 300))
def test_thinning_keeps_every_peak_and_the_width(total: list[int], wide: float) -> None:
    edges = np.linspace(0, wide, len(total) + 1)
    values = np.array(total, dtype=float)
    kept, left, right = decimate(edges[:-1], edges[1:], values)
    assert values[kept].max() == values.max()
    assert left[0] == 0
    assert right[-1] == wide
    assert np.array_equal(left[1:], right[:-1])
    assert len(kept) <= max(wide + 2, 1)
    for at, a, b in zip(kept, left, right, strict=True):
        inside = (edges[:-1] >= a) & (edges[1:] <= b)
        assert values[at] == values[inside].max()


def test_old_updates_give_way_to_a_long_window() -> None:
    long = memory(updates=3, window=16)  # 66 statements an update
    kept = keep_recent(long, 3)
    assert kept.updates == [(0, 42)]
    assert list(kept.statements) == list(long.statements)[132:]
    assert kept.starts[0] == 0
    assert kept.modules == long.modules[long.starts[132] :]
    assert all(len(values) == len(kept.modules) for values in kept.categories.values())
    assert keep_recent(memory(updates=3), 3).updates == memory(updates=3).updates
    assert keep_recent(memory(updates=3), 2).updates == [(0, 41), (6, 42)]
    alone = memory(updates=1, window=60)
    assert keep_recent(alone, 3) is alone


def test_labels_stay_apart_and_inside() -> None:
    places = spread_labels({"a": 3.0, "b": 4.0, "c": 99.0, "d": 100.0, "e": 50.0}, 16, 100)
    heights = sorted(places.values())
    assert all(b - a >= 16 - 1e-9 for a, b in itertools.pairwise(heights))
    assert heights[0] >= 0
    assert heights[-1] <= 100
    assert places["e"] == 50.0
    assert [name for name, _ in sorted(places.items(), key=lambda pair: pair[1])] == ["a", "b", "e", "c", "d"]


def test_categories_stack_in_one_order_and_strangers_are_other() -> None:
    edges = stacked({"other": [1, 1], "odd": [2, 2], "weights": [10, 20]}, 2)
    assert list(edges) == list(CATEGORY_STYLES)
    assert edges["weights"][1].tolist() == [10, 20]
    assert edges["other"][0].tolist() == [10, 20]
    assert edges["other"][1].tolist() == [13, 23]


def test_shares_and_causes_in_words() -> None:
    assert [percent(share) for share in (0, 1e-9, 2.6e-5, 0.0042, 0.27, 0.999, 1.0)] == [
        "0 %", "under 0.001 %", "0.003 %", "0.4 %", "27 %", "100 %", "100 %",
    ]  # fmt: skip
    assert share_of_gpu("H100", 80 * 2**30, 100 * 2**30) == "H100 holds 80 GiB: the peak needs 1.2 times that"
    assert peak_location("scaler") == "at scaler"
    assert bounds([0, 5, 3, 99], 5, 10) == [0, 5, 5, 10, 10, 10]
