"""Figures that are no widgets, `compare` and an exercise's, in a browser: they follow the theme and fit a phone."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from PIL import Image

from .driving import Notebook

LAB = "from gradlab import Lab, Recipe, compare, exercise\nLab('line', controls=['lr'], panels=['loss'])"
CELLS = {
    "compare": "compare('line', {'right': Recipe(lr=0.01), 'forgot': Recipe(lr=0.01, zero_grad=False)}, updates=9)",
    "exercise": "def answer(overflowed, scale, growth_interval):\n    return [scale] * len(overflowed)\n"
    "exercise('scales_after').check(answer)",
}


def paper(page: Notebook) -> float:
    """The lightness of a corner of the figure, as it is painted, 0 to 255."""
    page.page.wait_for_timeout(300)
    picture = Image.open(io.BytesIO(page.page.locator("img.gl-themed").screenshot())).convert("L")
    return float(picture.getpixel((4, picture.height - 4)))


@pytest.mark.parametrize("figure", CELLS)
def test_a_figure_is_dark_in_the_dark_theme(lab_page: Callable[..., Notebook], figure: str) -> None:
    page = lab_page(LAB, CELLS[figure])
    page.page.locator("img.gl-themed").wait_for()
    assert paper(page) > 240
    page.theme("Dark")
    try:
        assert paper(page) < 60
    finally:
        page.theme("Light")


def test_a_table_that_is_wider_than_a_phone_is_moved_by_itself(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB, CELLS["compare"], width=390)
    page.side_bar(False)
    try:
        box = page.page.get_by_role("group", name="line: table")
        box.wait_for()
        wide, room, right = box.evaluate("b => [b.scrollWidth, b.clientWidth, b.getBoundingClientRect().right]")
        assert wide > room
        assert right <= 390
        box.focus()
        page.page.keyboard.press("ArrowRight")
        page.page.wait_for_timeout(300)
        assert box.evaluate("b => b.scrollLeft") > 0
        assert all(head.strip() for head in box.locator("th").all_inner_texts())
    finally:
        page.side_bar(True)
