"""The bars against the cards: heights in pixels, lines at the right bytes, and what fits in words."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from seen import ink, labels, words

from gradlab.forecast import GPUS
from gradlab.memory.timeline import CATEGORIES
from gradlab.scenes.kinds import Fit
from gradlab.scenes.memory_text import times, which_fit
from gradlab.views import palette
from gradlab.views.fit import GPU_SIGHT, GpuFitPanel

pytestmark = pytest.mark.filterwarnings("error")
GIB = 2**30
ALL = list(GPUS.items())


def bar(*gib: float) -> dict[str, int]:
    """Bytes by category."""
    return {name: int(size * GIB) for name, size in zip(CATEGORIES, [*gib, *[0] * 6], strict=False)}


def shown(*bars: tuple[str, dict[str, int]], cards: Any = ALL, title: str = "") -> GpuFitPanel:
    panel = GpuFitPanel()
    panel.update(Fit(bars, cards, title))
    panel.pixels()
    return panel


def coloured(panel: GpuFitPanel, colour: str) -> Any:
    """Which pixels, from the ground of the axes upward, have the colour of an area, lines and hatches left out."""
    tint = np.array([round(255 * c) for c in palette.tint(colour, 0.5)])
    box = panel.axes.bbox
    pixels = panel.pixels()[::-1, :, :3].astype(int)[round(box.y0) : round(box.y1), round(box.x0) : round(box.x1)]
    return (np.abs(pixels - tint) <= 2).all(axis=2)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.floats(0.5, 6000), min_size=1, max_size=4))
def test_bars_are_as_high_as_their_bytes(gib: list[float]) -> None:
    panel = shown(*((f"n{at}", bar(size)) for at, size in enumerate(gib)), cards=[])
    seen = coloured(panel, palette.WEIGHTS)
    a_byte = panel.axes.bbox.height / panel.axes.get_ylim()[1]
    columns = np.flatnonzero(seen.any(axis=0))
    groups = np.split(columns, np.flatnonzero(np.diff(columns) > 5) + 1)
    wanted = [size * GIB * a_byte for size in gib if size * GIB * a_byte > 8]
    heights = [float(np.flatnonzero(seen[:, int(np.median(group))])[-1]) for group in groups if len(group)]
    assert [h for h in heights if h > 4] == pytest.approx([w for w in wanted if w > 8], abs=5)


def test_the_parts_of_a_bar_stand_on_each_other() -> None:
    panel = shown(("now", bar(10, 0, 30)), cards=[])
    rows = np.flatnonzero(coloured(panel, palette.WEIGHTS).any(axis=1))
    dots = np.flatnonzero(coloured(panel, palette.OPTIMIZER).any(axis=1))
    a_byte = panel.axes.bbox.height / panel.axes.get_ylim()[1]
    assert rows[-1] == pytest.approx(10 * GIB * a_byte, abs=6)
    assert (dots[0], dots[-1]) == pytest.approx((10 * GIB * a_byte, 40 * GIB * a_byte), abs=6)


@pytest.mark.parametrize("bars", [[(0.5, 0.5, 2)], [(30, 30, 60), (15, 15, 0, 4)], [(1512, 1512, 3024, 450)]])
def test_cards_are_lines_at_their_bytes_while_they_are_in_sight(bars: list[tuple[float, ...]]) -> None:
    panel = shown(*((str(at), bar(*sizes)) for at, sizes in enumerate(bars)))
    highest = max(sum(sizes) for sizes in bars) * GIB
    segments = [one for part in panel.axes.findobj(LineCollection) for one in part.get_segments()]
    lines = [start[1] for start, end in segments if end[0] == panel.axes.get_xlim()[1]]
    assert lines == sorted(holds for holds in GPUS.values() if holds <= GPU_SIGHT * highest)
    assert all(line < panel.axes.get_ylim()[1] for line in lines)
    names = labels(panel, "|".join(GPUS))
    assert [name.get_text() for name in names] == sorted(
        (name for name, holds in ALL if holds <= GPU_SIGHT * highest), key=GPUS.__getitem__
    )
    ground = panel.axes.bbox.y0
    heights = [(name.get_transform().transform(name.get_position())[1] - ground) / 2 for name in names]
    assert all(other - one >= 13 - 1e-6 for one, other in itertools.pairwise(heights))
    assert all(0 <= height <= panel.axes.bbox.height / 2 for height in heights)


def test_the_words_are_about_the_last_bar() -> None:
    panel = shown(("before", bar(30, 30, 60, 11)), ("now", bar(15, 15)), title="llama-8b")
    assert words(panel, "fits.*") == ["fits A100-40, H100 and A100-80, not T4 or L4"]
    assert panel.corner_text.get_text() == "llama-8b"
    assert words(panel, r"\d+ GiB") == ["131 GiB", "30 GiB"]
    assert words(panel, "before|now") == ["before", "now"]
    assert words(panel, f"({'|'.join(CATEGORIES)}).*") == ["weights 15 GiB", "gradients 15 GiB"]
    panel.update(Fit([("now", bar(1))], [("H100", GPUS["H100"])]))
    assert words(panel, "H100 .*") == ["H100 holds 79.1 GiB: 1 % used at the peak"]
    panel.update(Fit([], ALL))
    assert "nothing is forecast yet" in words(panel)


@pytest.mark.parametrize(
    ("gib", "cards", "said"),
    [
        (1, ALL, "fits T4, L4, A100-40, H100 and A100-80"),
        (131, [("H100", GPUS["H100"])], "does not fit H100: 1.7 times what it holds"),
        (6063, ALL, "fits none: 77 times what A100-80 holds"),
        (79, [("H100", 79 * GIB)], "fits H100"),  # the very last byte is usable too
        (3, [], ""),
    ],
)
def test_what_fits_in_words(gib: float, cards: Any, said: str) -> None:
    assert which_fit(bar(gib), sorted(cards, key=lambda card: card[1])) == said


def test_nearly_a_card_is_never_told_as_a_whole_one() -> None:
    assert [times(ratio) for ratio in (1.0001, 1.04, 1.1, 2.04, 9.94, 9.96, 82.3, 1234)] == [
        "1.01 times", "1.04 times", "1.1 times", "2 times", "9.9 times", "10 times", "82 times", "1,234 times",
    ]  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [0.9, 3, 60, 1500])
def test_no_label_leaves_the_panel_or_its_bar(count: int, size: float) -> None:
    bars = [(f"batch {2**at}", bar(size, size / 2, size, size * 2**at, size / 300, 0.3)) for at in range(count)]
    panel = shown(*bars, title="gpt2-1.5b")
    names = []
    assert len(labels(panel)) > 2 * count
    for label in labels(panel):
        start, end = ink(label)
        assert start >= 0, label.get_text()
        assert end <= panel.width, label.get_text()
        if label.get_verticalalignment() == "top":  # a name below its bar
            names.append((start, end))
    assert len(names) == count
    assert all(one[1] <= other[0] + 1 for one, other in itertools.pairwise(names))


def test_only_the_newest_bars_are_kept() -> None:
    panel = shown(*((str(at), bar(at + 1)) for at in range(9)))
    names = [label.get_text() for label in labels(panel) if label.get_verticalalignment() == "top"]
    assert names == ["5", "6", "7", "8"]
