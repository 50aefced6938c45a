"""The bars against the cards: bytes, lines at the right bytes, and what fits in words."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from gradlab.drawing import Drawing, Line, draw
from gradlab.forecasting import GPUS, SHOWN
from gradlab.memory import CATEGORIES
from gradlab.scenes import Fit

GIB = 2**30
ALL = [(name, GPUS[name]) for name in SHOWN]
IN_SIGHT = 4.0  # times the highest bar: a card that holds more is said in words instead of drawn


def bar(*gib: float) -> dict[str, int]:
    """Bytes by category."""
    return {name: int(size * GIB) for name, size in zip(CATEGORIES, [*gib, *[0] * 6], strict=False)}


def shown(*bars: tuple[str, dict[str, int]], cards: Any = ALL, **more: str) -> Drawing:
    return draw(Fit(bars, cards, **more))


def edges(drawing: Drawing, id: str) -> tuple[float, float]:
    """The bytes at which a part of a bar begins and ends, in GiB."""
    bytes_ = drawing.find(id).points[1::2]
    return min(bytes_) / GIB, max(bytes_) / GIB


@settings(max_examples=40)
@hypothesis.given(st.lists(st.floats(0.5, 6000), min_size=1, max_size=4))
def test_bars_are_as_high_as_their_bytes(gib: list[float]) -> None:
    drawing = shown(*((f"n{i}", bar(size)) for i, size in enumerate(gib)), cards=[])
    for i, size in enumerate(gib):
        assert edges(drawing, f"weights {i}") == pytest.approx((0, size), abs=1e-8)
        assert i < drawing.find(f"weights {i}").points[0] < drawing.find(f"sum {i}").x < i + 1
    assert max(gib) * GIB < drawing.axes[0].y.high < 2 * max(gib) * GIB
    assert [span.texts[0] for span in drawing.axes[0].x.spans] == [f"n{i}" for i in range(len(gib))]


def test_a_name_longer_than_eight_has_a_short_form() -> None:
    drawing = shown(("eight is", bar(1)), ("nine chars", bar(1)), cards=[])
    assert [span.texts for span in drawing.axes[0].x.spans] == [("eight is",), ("nine chars", "nine cha\u2026")]


def test_the_parts_of_a_bar_stand_on_each_other() -> None:
    drawing = shown(("now", {**bar(10, 0, 0, 5, 0, 15), "allocator": 10 * GIB, "CUDA": 5 * GIB}), cards=[])
    parts = {"weights": (0, 10), "gradients": (10, 15), "other": (15, 30), "allocator": (30, 40), "CUDA": (40, 45)}
    assert {name: edges(drawing, f"{name} 0") for name in parts} == parts
    assert {"45 GiB", "allocator 10 GiB", "CUDA 5 GiB"} <= set(drawing.texts())
    assert drawing.find("other 0").words == "now: other 15 GiB"
    assert drawing.find("allocator 0").words == "now: what PyTorch's allocator reserves above the tensors 10 GiB"
    looks = {(mark.fill, mark.hatch) for mark in drawing.marks if getattr(mark, "words", "").startswith("now: ")}
    assert len(looks) == 5
    swatch = drawing.find("name weights").swatch
    assert (swatch.fill, swatch.hatch) == (drawing.find("weights 0").fill, drawing.find("weights 0").hatch)


@pytest.mark.parametrize("bars", [[(0.5, 0.5, 2)], [(30, 30, 60), (15, 15, 0, 4)], [(1512, 1512, 3024, 450)]])
def test_cards_are_lines_at_their_bytes_while_they_are_in_sight(bars: list[tuple[float, ...]]) -> None:
    drawing = shown(*((str(i), bar(*sizes)) for i, sizes in enumerate(bars)))
    highest = max(sum(sizes) for sizes in bars) * GIB
    in_sight = sorted((holds, name) for name, holds in ALL if holds <= IN_SIGHT * highest)
    lines = [mark for mark in drawing.marks if isinstance(mark, Line)]
    assert [line.points[1] for line in lines] == [holds for holds, _ in in_sight]
    names = [mark for mark in drawing.marks if mark.id.startswith("card name")]
    assert [(name.y, name.texts[0]) for name in names] == in_sight
    assert all(holds < drawing.axes[0].y.high for holds, _ in in_sight)


def test_the_words_are_about_the_last_bar() -> None:
    verdict = "fits all but a T4"
    drawing = shown(("before", bar(30, 30, 60, 11)), ("now", bar(15, 0, 0, 15)), title="llama-8b", verdict=verdict)
    texts = drawing.texts()
    assert {"fits all but a T4", "llama-8b", "131 GiB", "30 GiB"} <= set(texts)
    assert [text for text in texts if text.split()[0] in CATEGORIES] == ["weights 15 GiB", "gradients 15 GiB"]
    assert drawing.words == "Peaks of memory: before 131 GiB, now 30 GiB. The last one fits all but a T4."
    assert "nothing is forecast yet" in shown().texts()
    assert shown(cards=[]).words == "Nothing is forecast yet."
