"""The memory panel against the numbers that it was given: heights in pixels, words, what is merged and what is cut."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradlab.formatting import bytes_text
from gradlab.scenes.kinds import Memory
from gradlab.scenes.memory_text import peak_location, percent, share_of_gpu
from gradlab.views.memory import MemoryPanel
from gradlab.views.spread import bounds, decimate, keep_recent, layout_statements, repeated, visible_labels
from gradlab.views.stack import CATEGORY_STYLES, byte_ticks, spread_labels, stacked

pytestmark = pytest.mark.filterwarnings("error")
MIB = 2**20


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


def shown(scene: Memory) -> MemoryPanel:
    panel = MemoryPanel()
    panel.update(scene)
    panel.pixels()
    return panel


def height(panel: MemoryPanel, x: float) -> float:
    """How high the coloured areas reach at so many CSS pixels from the left end of the axes, in bytes."""
    pixels = panel.pixels()[::-1, :, :3].astype(int)
    left, bottom = panel.axes.transData.transform((x, 0.0))
    column = pixels[round(bottom) + 3 :, round(left)]
    coloured = (column.max(axis=1) - column.min(axis=1)) > 12  # neither white nor grey
    return float(panel.axes.transData.inverted().transform((0, round(bottom) + 3 + np.flatnonzero(coloured)[-1]))[1])


def ink(label: Any, panel: MemoryPanel) -> tuple[float, float]:
    """Where a label begins and ends, in CSS pixels from the left of the panel."""
    x = label.get_transform().transform(label.get_position())[0] / 2
    wide = label.wide() / 2
    start = x - {"left": 0.0, "center": wide / 2, "right": wide}[label.get_horizontalalignment()]
    return start, start + wide


def test_every_point_is_drawn_as_high_as_its_bytes() -> None:
    scene = memory(updates=2)
    panel = shown(scene)
    where = panel._statements._spread
    for point in (0, 4, 6, 8, 11, 14, len(where.left) - 1):
        middle = float(where.left[point] + where.right[point]) / 2
        total = sum(values[point] for values in scene.categories.values())
        assert height(panel, middle) == pytest.approx(total, abs=3 / panel._down)


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
        {"weights": [5, 5, 5, 5], "other": [0, 1, 407, 2]},
        [(0, 7)],
        ["", "", module, "elsewhere"],
    )
    panel = shown(scene)
    assert panel._cause.get_text() == f"\u25bc peak 412 B {said}"
    ((x,), (y,)) = panel._peaks.get_data()  # type: ignore[misc]
    where = panel._statements._spread
    assert where.left[2] < x < where.right[2]
    assert y > 412


def test_the_words_are_about_the_newest_update_and_each_peak_has_its_mark() -> None:
    scene = memory(updates=3)
    activations = list(scene.categories["activations"])
    activations[5] = 30 * MIB  # in the oldest
    activations[-3] = 20 * MIB  # in the newest: the end of backward
    panel = shown(dataclasses.replace(scene, categories=scene.categories | {"activations": activations}))
    assert panel._cause.get_text() == "\u25bc peak 22 MiB while backward ran, in blocks.0"
    assert [label.get_text() for label in panel._values] == ["32 MiB", "10 MiB", "22 MiB"]
    assert [label.get_text() for label in panel._numbers] == ["update 40", "update 41", "update 42"]
    assert len(panel._peaks.get_xdata()) == 3  # type: ignore[arg-type]
    assert len(panel._dividers.get_segments()) == 2


def test_a_card_in_sight_is_a_line_and_one_far_above_is_words() -> None:
    near = shown(memory(capacity=("T4", 15 * MIB)))  # the peak is 10 MiB
    assert list(near._lines[0].get_ydata()) == [15 * MIB] * 2
    assert near._names[0].get_text() == "T4 15 MiB"
    assert near._room.get_text() == ""
    far = shown(memory(capacity=("T4", 15 * 1024 * MIB)))
    assert list(far._lines[0].get_ydata()) == []
    assert far._room.get_text() == "T4 holds 15 GiB: 0.07 % used at the peak"
    over = shown(memory(capacity=("T4", 5 * MIB)))
    assert list(over._lines[0].get_ydata()) == [5 * MIB] * 2
    assert over._room.get_text() == "T4 holds 5 MiB: the peak needs 2 times that"
    assert far.axes.get_position().y1 < near.axes.get_position().y1  # its words have a row of their own
    far.update(memory())
    assert far.axes.get_position().y1 == pytest.approx(near.axes.get_position().y1)


def test_what_the_allocator_holds_is_drawn_or_said() -> None:
    near = shown(memory(allocated=11 * MIB, reserved=14 * MIB, note="1 update in 12 is watched"))
    assert [label.get_text() for label in near._names] == ["", "allocated 11 MiB", "reserved 14 MiB"]
    assert near.corner_text.get_text() == "1 update in 12 is watched"
    far = shown(memory(reserved=22 * MIB, note="1 update in 12 is watched"))
    assert far.corner_text.get_text() == "reserved 22 MiB \u00b7 1 update in 12 is watched"
    assert far.axes.get_ylim()[1] < 22 * MIB


@pytest.mark.parametrize("updates", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 4, 16])
def test_no_word_leaves_the_panel_or_covers_another(updates: int, window: int) -> None:
    panel = shown(memory(updates, window, capacity=("T4", 15 * 1024 * MIB), note="1 update in 12 is watched"))
    rows = [[panel.heading, panel.corner_text], [panel._cause], [panel._room], panel._numbers, panel._values]
    for row in rows:
        spans = sorted(ink(label, panel) for label in row if label.get_text())
        assert all(a >= 0 and b <= panel.width for a, b in spans)
        assert all(one[1] <= other[0] + 1 for one, other in itertools.pairwise(spans))
    words = [label for label in panel.axes.get_xticklabels() if label.get_text()]
    assert "backward" in {label.get_text() for label in words} or window > 1
    boxes = [label.get_window_extent() for label in (*words, *panel._statements._times)]
    assert all(box.y0 >= 0 and box.x0 >= 0 and box.x1 <= 2 * panel.width for box in boxes)
    if all(label.get_rotation() == 0 for label in words):
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_long_numbers_of_updates_and_peaks_at_an_edge_stay_in_their_update() -> None:
    scene = memory(updates=3)
    weights = list(scene.categories["weights"])
    weights[0] = weights[-1] = 40 * MIB  # at the very left and at the very right
    numbers = [(at, 123_456 + number) for at, number in scene.updates]
    categories = scene.categories | {"weights": weights}
    panel = shown(dataclasses.replace(scene, updates=numbers, categories=categories))
    assert [label.get_text() for label in panel._numbers] == ["123,496", "123,497", "123,498"]
    left = panel.axes.bbox.x0 / 2
    for label, (begin, end) in zip(panel._values, panel._statements._spread.updates, strict=True):
        a, b = ink(label, panel)
        assert left + begin - 1 <= a
        assert b <= left + end + 1


def test_a_statement_in_which_nothing_moves_is_narrow() -> None:
    panel = shown(Memory(["zero_grad", "for", "step"], range(3), {"weights": [5, 5, 9]}, [(0, 1)]))
    zero_grad, head, step = (b - a for a, b in panel._statements._spread.statements)
    assert head < step / 2
    assert zero_grad == pytest.approx(step)


def test_micro_batches_share_a_bracket() -> None:
    panel = shown(memory(window=16))
    assert [text.get_text() for text in panel._statements._times] == ["16 micro-batches"]
    (line,) = panel._statements._brackets.get_segments()
    places = panel._statements._spread.statements
    assert (line[0][0], line[-1][0]) == pytest.approx((places[1][0] + 1, places[64][1] - 1))
    assert [label.get_text() for label in panel.axes.get_xticklabels()] == ["zero_grad", "step"]
    panel.update(memory(window=1))
    assert panel._statements._times == []
    assert not any("micro" in text.get_text() for text in panel.axes.texts)


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


def test_two_thousand_points_show_their_peak() -> None:
    scene = memory(updates=2, blocks=125)
    assert len(scene.modules) > 2000 / 2
    weights = [2 * MIB] * len(scene.modules)
    weights[-300] = 50 * MIB  # in a stretch a fraction of a pixel wide
    panel = shown(dataclasses.replace(scene, categories=scene.categories | {"weights": weights}))
    at = len(weights) - 300
    where = panel._statements._spread
    top = weights[at] + scene.categories["activations"][at]
    x = float(where.left[at] + where.right[at]) / 2
    highest = max(height(panel, x + shift) for shift in (-1.0, -0.5, 0.0, 0.5, 1.0))
    assert highest == pytest.approx(top, abs=3 / panel._down)
    assert scene.modules[at] in panel._cause.get_text()


def test_old_updates_give_way_to_a_long_window() -> None:
    long = memory(updates=3, window=16)  # 66 statements an update
    kept = keep_recent(long)
    assert kept.updates == [(0, 42)]
    assert list(kept.statements) == list(long.statements)[132:]
    assert kept.starts[0] == 0
    assert kept.modules == long.modules[long.starts[132] :]
    assert all(len(values) == len(kept.modules) for values in kept.categories.values())
    assert keep_recent(memory(updates=3)).updates == memory(updates=3).updates
    lock = memory(updates=1, window=60)
    assert keep_recent(lock) is lock


def test_a_long_module_name_is_cut_from_the_left() -> None:
    name = "transformer.layers.11.self_attention.heads.output_projection.lora_A"
    scene = memory(peak=8 * MIB)
    panel = shown(dataclasses.replace(scene, modules=[name] * len(scene.modules)))
    said = panel._cause.get_text()
    assert "\u2026" in said
    assert said.endswith("lora_A")
    assert ink(panel._cause, panel)[1] <= panel.width


def test_a_new_update_of_the_same_loop_moves_no_background() -> None:
    panel = shown(memory(updates=3))
    for more in range(1, 20):
        scene = memory(updates=3, peak=8 * MIB + more)
        panel.update(dataclasses.replace(scene, updates=[(at, number + more) for at, number in scene.updates]))
        panel.pixels()
    assert panel.redraws == 1


def test_labels_stay_apart_and_inside() -> None:
    places = spread_labels({"a": 3.0, "b": 4.0, "c": 99.0, "d": 100.0, "e": 50.0}, 16, 100)
    heights = sorted(places.values())
    assert all(b - a >= 16 - 1e-9 for a, b in itertools.pairwise(heights))
    assert heights[0] >= 0
    assert heights[-1] <= 100
    assert places["e"] == 50.0
    assert [name for name, _ in sorted(places.items(), key=lambda pair: pair[1])] == ["a", "b", "e", "c", "d"]


def test_words_are_chosen_by_what_they_say() -> None:
    words = ["for", "x, y", "zero_grad", "output", "backward", "step"]
    narrow = [(at * 8.0, at * 8.0 + 8) for at in range(6)]
    assert [words[at] for at in visible_labels(words, narrow, set(), flat=False)] == ["for", "zero_grad", "backward"]
    roomy = [(at * 80.0, at * 80.0 + 80) for at in range(6)]
    assert visible_labels(words, roomy, set(), flat=True) == list(range(6))
    assert visible_labels(words, roomy, {4}, flat=True) == [0, 1, 2, 3, 5]


def test_categories_stack_in_one_order_and_strangers_are_other() -> None:
    edges = stacked({"other": [1, 1], "odd": [2, 2], "weights": [10, 20]}, 2)
    assert list(edges) == list(CATEGORY_STYLES)
    assert edges["weights"][1].tolist() == [10, 20]
    assert edges["other"][0].tolist() == [10, 20]
    assert edges["other"][1].tolist() == [13, 23]


@pytest.mark.parametrize("top", [7, 900, 1023, 1100, 1500, 5e5, 1.02e6, 1.5e6, 3e9, 7e12])
def test_ticks_lie_on_round_bytes(top: float) -> None:
    ticks = byte_ticks(top)
    assert 2 <= len(ticks) <= 7
    assert max(ticks) <= top
    assert all(float(bytes_text(tick).split()[0]) * 2 % 1 == 0 for tick in ticks)


def test_shares_and_causes_in_words() -> None:
    assert [percent(share) for share in (0, 1e-9, 2.6e-5, 0.0042, 0.27, 0.999, 1.0)] == [
        "0 %", "under 0.001 %", "0.003 %", "0.4 %", "27 %", "100 %", "100 %",
    ]  # fmt: skip
    assert share_of_gpu("H100", 80 * 2**30, 100 * 2**30) == "H100 holds 80 GiB: the peak needs 1.2 times that"
    assert peak_location("scaler") == "at scaler"
    assert bounds([0, 5, 3, 99], 5, 10) == [0, 5, 5, 10, 10, 10]
