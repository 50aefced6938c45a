"""The bars against the cards: heights, lines at the right bytes, and what fits in words."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradlab.drawing import Drawing, draw
from gradlab.forecasting import GPUS, SHOWN
from gradlab.memory import CATEGORIES
from gradlab.scenes import Fit

GIB = 2**30
ALL = [(name, GPUS[name]) for name in SHOWN]
IN_SIGHT = 4.0  # times the highest bar: a card that holds more is said in words instead of drawn
GROUND = 236.0


def bar(*gib: float) -> dict[str, int]:
    """Bytes by category."""
    return {name: int(size * GIB) for name, size in zip(CATEGORIES, [*gib, *[0] * 6], strict=False)}


def shown(*bars: tuple[str, dict[str, int]], cards: Any = ALL, **more: str) -> Drawing:
    return draw(Fit(bars, cards, **more))


def edges(drawing: Drawing, id: str) -> tuple[float, float]:
    """How far above the ground a part of a bar begins and ends, in pixels."""
    ys = drawing.find(id).points[1::2]
    return GROUND - max(ys), GROUND - min(ys)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0.5, 6000), min_size=1, max_size=4))
def test_bars_are_as_high_as_their_bytes(gib: list[float]) -> None:
    drawing = shown(*((f"n{at}", bar(size)) for at, size in enumerate(gib)), cards=[])
    grounds, tops = zip(*(edges(drawing, f"weights {at}") for at in range(len(gib))), strict=True)
    assert [top / max(tops) for top in tops] == pytest.approx([size / max(gib) for size in gib], abs=1e-6)
    assert set(grounds) == {0}
    assert 80 < max(tops) <= 190 - 18


def test_the_parts_of_a_bar_stand_on_each_other() -> None:
    drawing = shown(("now", bar(10, 0, 30)), cards=[])
    below, middle = edges(drawing, "weights 0")
    assert edges(drawing, "optimizer 0") == pytest.approx((middle, 4 * middle))
    assert below == 0
    assert drawing.find("optimizer 0").words == "now: optimizer 30 GiB"


def test_what_a_card_holds_beside_the_tensors_lies_above_them() -> None:
    drawing = shown(
        ("now", {**bar(10, 5, 0, 0, 0, 15), "allocator": 10 * GIB, "CUDA": 5 * GIB}), cards=[("L4", 44 * GIB)]
    )
    per_gib = edges(drawing, "weights 0")[1] / 10
    assert edges(drawing, "other 0") == pytest.approx((15 * per_gib, 30 * per_gib))
    assert edges(drawing, "allocator 0") == pytest.approx((30 * per_gib, 40 * per_gib))
    assert edges(drawing, "CUDA 0") == pytest.approx((40 * per_gib, 45 * per_gib))
    assert GROUND - drawing.find("card 0").points[1] == pytest.approx(44 * per_gib), "the bar reaches above the line"
    assert {"45 GiB", "allocator 10 GiB", "CUDA 5 GiB"} <= set(drawing.texts())
    assert drawing.find("allocator 0").words == "now: what PyTorch's allocator reserves above the tensors 10 GiB"
    looks = {(mark.fill, mark.hatch) for mark in drawing.marks if getattr(mark, "words", "").startswith("now: ")}
    assert len(looks) == 5


@pytest.mark.parametrize("bars", [[(0.5, 0.5, 2)], [(30, 30, 60), (15, 15, 0, 4)], [(1512, 1512, 3024, 450)]])
def test_cards_are_lines_at_their_bytes_while_they_are_in_sight(bars: list[tuple[float, ...]]) -> None:
    drawing = shown(*((str(at), bar(*sizes)) for at, sizes in enumerate(bars)))
    highest = max(sum(sizes) for sizes in bars) * GIB
    per_byte = edges(drawing, "weights 0")[1] / (bars[0][0] * GIB)
    seen = sorted((holds, name) for name, holds in ALL if holds <= IN_SIGHT * highest)
    lines = [mark for mark in drawing.marks if mark.id.startswith("card ") and hasattr(mark, "dash")]
    assert [GROUND - line.points[1] for line in lines] == pytest.approx([holds * per_byte for holds, _ in seen])
    names = [mark for mark in drawing.marks if mark.id.startswith("card name")]
    assert [name.text for name in names] == [name for _, name in seen]
    heights = sorted(GROUND - name.y for name in names)
    assert all(other - one >= 12.5 for one, other in itertools.pairwise(heights))


def test_the_words_are_about_the_last_bar() -> None:
    drawing = shown(("before", bar(30, 30, 60, 11)), ("now", bar(15, 15)), title="llama-8b", said="fits all but a T4")
    texts = drawing.texts()
    wanted = {"fits all but a T4", "llama-8b", "131 GiB", "30 GiB", "before", "now"}
    assert wanted <= set(texts)
    assert [text for text in texts if text.split()[0] in CATEGORIES] == ["weights 15 GiB", "gradients 15 GiB"]
    assert drawing.words == "Peaks of memory: before 131 GiB, now 30 GiB. The last one fits all but a T4."
    assert "nothing is forecast yet" in shown().texts()
    assert shown(cards=[]).words == "Nothing is forecast yet."


def test_only_the_newest_bars_are_kept() -> None:
    drawing = shown(*((str(at), bar(at + 1)) for at in range(9)))
    assert [drawing.find(f"bar {at}").text for at in range(4)] == ["5", "6", "7", "8"]
