"""The memory panel against the numbers that it was given: heights in pixels, words, what is merged and what is cut."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from seen import ink, labels, words

from gradlab.formatting import bytes_text
from gradlab.scenes.kinds import Memory
from gradlab.scenes.memory_text import peak_location, percent, share_of_gpu
from gradlab.views.label import Label
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


def heights(panel: MemoryPanel) -> list[float]:
    """How high the coloured areas reach in each column of pixels, in bytes; 0 where there are none."""
    pixels = panel.pixels()[::-1, :, :3].astype(int)
    box = panel.axes.bbox
    ground = round(box.y0) + 3  # above the axis
    inner = pixels[ground : round(box.y1), round(box.x0) + 2 : round(box.x1) - 2]
    coloured = (inner.max(axis=2) - inner.min(axis=2)) > 12  # neither white nor grey
    tops = [ground + np.flatnonzero(column)[-1] if column.any() else box.y0 for column in coloured.T]
    return [float(panel.axes.transData.inverted().transform((0, top))[1]) for top in tops]


def near(panel: MemoryPanel) -> float:
    """Three CSS pixels, in bytes."""
    return 3 * panel.axes.get_ylim()[1] / (panel.axes.bbox.height / 2)


def marks(panel: MemoryPanel) -> list[tuple[float, float]]:
    """The marks on the peaks."""
    (line,) = [line for line in panel.axes.lines if line.get_marker() == "v"]
    return list(zip(*line.get_data(), strict=True))


def levels(panel: MemoryPanel) -> list[float]:
    """The bytes at which there is a line from side to side."""
    return [line.get_ydata()[0] for line in panel.axes.lines if line.get_marker() != "v" and len(line.get_ydata())]  # type: ignore[index,arg-type]


def dividers(panel: MemoryPanel) -> list[float]:
    """Where one update ends and the next one begins."""
    segments = [one for lines in panel.axes.findobj(LineCollection) for one in lines.get_segments()]
    return [float(segment[0][0]) for segment in segments]


def below(panel: MemoryPanel) -> list[Any]:
    """The words that stand below the axis beside those of its ticks: of many micro-batches."""
    return [text for text in panel.axes.texts if not isinstance(text, Label) and text.get_text()]


def test_every_point_is_drawn_as_high_as_its_bytes() -> None:
    scene = memory(updates=2)
    panel = shown(scene)
    totals = [sum(point) for point in zip(*scene.categories.values(), strict=True)]
    drawn = heights(panel)
    columns = iter(drawn)
    for total in (total for total, _ in itertools.groupby(totals)):  # one after the other, from left to right
        assert any(high == pytest.approx(total, abs=near(panel)) for high in columns), total
    between = panel.axes.get_xlim()[1] / 50
    assert sum(all(high != pytest.approx(total, abs=near(panel)) for total in totals) for high in drawn) < 3 * between


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
    panel = shown(scene)
    assert words(panel, "\u25bc.*") == [f"\u25bc peak 412 B {said}"]
    ((x, y),) = marks(panel)
    assert y > 412
    drawn = heights(panel)
    at = round(x / panel.axes.get_xlim()[1] * len(drawn))
    assert drawn[at] == pytest.approx(412, abs=near(panel))


def test_the_words_are_about_the_newest_update_and_each_peak_has_its_mark() -> None:
    scene = memory(updates=3)
    activations = list(scene.categories["activations"])
    activations[5] = 30 * MIB  # in the oldest
    activations[-3] = 20 * MIB  # in the newest: the end of backward
    panel = shown(dataclasses.replace(scene, categories=scene.categories | {"activations": activations}))
    assert words(panel, "\u25bc.*") == ["\u25bc peak 22 MiB while backward ran, in blocks.0"]
    assert words(panel, r"\d+ MiB") == ["32 MiB", "10 MiB", "22 MiB"]
    assert words(panel, "update.*") == ["update 40", "update 41", "update 42"]
    assert len(marks(panel)) == 3
    assert len(dividers(panel)) == 2


def test_a_card_in_sight_is_a_line_and_one_far_above_is_words() -> None:
    close = shown(memory(capacity=("T4", 15 * MIB)))  # the peak is 10 MiB
    assert levels(close) == [15 * MIB]
    assert words(close, "T4.*") == ["T4 15 MiB"]
    far = shown(memory(capacity=("T4", 15 * 1024 * MIB)))
    assert levels(far) == []
    assert words(far, "T4.*") == ["T4 holds 15 GiB: 0.07 % used at the peak"]
    over = shown(memory(capacity=("T4", 5 * MIB)))
    assert levels(over) == [5 * MIB]
    assert words(over, "T4 holds.*") == ["T4 holds 5 MiB: the peak needs 2 times that"]
    assert far.axes.get_position().y1 < close.axes.get_position().y1  # its words have a row of their own
    far.update(memory())
    assert far.axes.get_position().y1 == pytest.approx(close.axes.get_position().y1)


def test_what_the_allocator_holds_is_drawn_or_said() -> None:
    close = shown(memory(allocated=11 * MIB, reserved=14 * MIB, note="1 update in 12 is watched"))
    assert words(close, "(allocated|reserved).*") == ["allocated 11 MiB", "reserved 14 MiB"]
    assert levels(close) == [11 * MIB, 14 * MIB]
    assert close.corner_text.get_text() == "1 update in 12 is watched"
    far = shown(memory(reserved=22 * MIB, note="1 update in 12 is watched"))
    assert far.corner_text.get_text() == "reserved 22 MiB \u00b7 1 update in 12 is watched"
    assert far.axes.get_ylim()[1] < 22 * MIB


@pytest.mark.parametrize("updates", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 4, 16])
def test_no_word_leaves_the_panel_or_covers_another(updates: int, window: int) -> None:
    panel = shown(memory(updates, window, capacity=("T4", 15 * 1024 * MIB), note="1 update in 12 is watched"))
    numbers, bytes_ = labels(panel, r"update.*|\d+"), labels(panel, "[^ ]+ MiB")
    assert len(numbers) in (1, updates)
    for row in ([panel.heading, panel.corner_text], labels(panel, "\u25bc.*"), labels(panel, "T4.*"), numbers, bytes_):
        spans = sorted(ink(label) for label in row)
        assert all(a >= 0 and b <= panel.width for a, b in spans)
        assert all(one[1] <= other[0] + 1 for one, other in itertools.pairwise(spans))
    ticks = [label for label in panel.axes.get_xticklabels() if label.get_text()]
    assert "backward" in {label.get_text() for label in ticks} or window > 1
    boxes = [label.get_window_extent() for label in (*ticks, *below(panel))]
    assert all(box.y0 >= 0 and box.x0 >= 0 and box.x1 <= 2 * panel.width for box in boxes)
    if all(label.get_rotation() == 0 for label in ticks):
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_long_numbers_of_updates_and_peaks_at_an_edge_stay_in_their_update() -> None:
    scene = memory(updates=3)
    weights = list(scene.categories["weights"])
    weights[0] = weights[-1] = 40 * MIB  # at the very left and at the very right
    numbers = [(at, 123_456 + number) for at, number in scene.updates]
    categories = scene.categories | {"weights": weights}
    panel = shown(dataclasses.replace(scene, updates=numbers, categories=categories))
    assert words(panel, r"[\d,]+") == ["123,496", "123,497", "123,498"]
    left = panel.axes.bbox.x0 / 2
    ends = [0.0, *dividers(panel), panel.axes.get_xlim()[1]]
    assert len(ends) == 4
    for label, (begin, end) in zip(labels(panel, r"\d+ MiB"), itertools.pairwise(ends), strict=True):
        a, b = ink(label)
        assert left + begin - 1 <= a
        assert b <= left + end + 1


def test_a_statement_in_which_nothing_moves_is_narrow() -> None:
    panel = shown(Memory(["zero_grad", "for", "step"], range(3), {"weights": [5, 5, 9]}, [(0, 1)]))
    first, second, _ = panel.axes.get_xticks()  # the middles of the three statements, which fill the whole width
    zero_grad, head = 2 * first, 2 * (second - 2 * first)
    step = panel.axes.get_xlim()[1] - zero_grad - head
    assert head < step / 2
    assert zero_grad == pytest.approx(step)


def test_micro_batches_share_a_bracket() -> None:
    panel = shown(memory(window=16))
    assert [text.get_text() for text in below(panel)] == ["16 micro-batches"]
    (bracket,) = (lines for lines in panel.figure.artists if isinstance(lines, LineCollection))
    ((start, *_, end),) = bracket.get_segments()
    zero_grad, step = panel.axes.get_xticks()  # in their middles: the bracket is on all that lies between them
    wide = panel.axes.get_xlim()[1]
    assert (start[0], end[0]) == pytest.approx((2 * zero_grad + 1, 2 * step - wide - 1))
    assert [label.get_text() for label in panel.axes.get_xticklabels()] == ["zero_grad", "step"]
    panel.update(memory(window=1))
    assert below(panel) == []


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
    weights[-300] = 50 * MIB  # in an interval a fraction of a pixel wide
    panel = shown(dataclasses.replace(scene, categories=scene.categories | {"weights": weights}))
    at = len(weights) - 300
    top = weights[at] + scene.categories["activations"][at]
    assert max(heights(panel)) == pytest.approx(top, abs=near(panel))
    (cause,) = words(panel, "\u25bc.*")
    assert scene.modules[at] in cause


def test_old_updates_give_way_to_a_long_window() -> None:
    long = memory(updates=3, window=16)  # 66 statements an update
    kept = keep_recent(long)
    assert kept.updates == [(0, 42)]
    assert list(kept.statements) == list(long.statements)[132:]
    assert kept.starts[0] == 0
    assert kept.modules == long.modules[long.starts[132] :]
    assert all(len(values) == len(kept.modules) for values in kept.categories.values())
    assert keep_recent(memory(updates=3)).updates == memory(updates=3).updates
    alone = memory(updates=1, window=60)
    assert keep_recent(alone) is alone


def test_a_long_module_name_is_cut_from_the_left() -> None:
    name = "transformer.layers.11.self_attention.heads.output_projection.lora_A"
    scene = memory(peak=8 * MIB)
    panel = shown(dataclasses.replace(scene, modules=[name] * len(scene.modules)))
    (cause,) = labels(panel, "\u25bc.*")
    assert "\u2026" in cause.get_text()
    assert cause.get_text().endswith("lora_A")
    assert ink(cause)[1] <= panel.width


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
