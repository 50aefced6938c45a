"""Displays without widgets in a browser: an exercise shows hints and a verdict, a wide table scrolls."""

from __future__ import annotations

from collections.abc import Callable

from .driving import Notebook

LAB = """from gradlab import Lab
lab = Lab('bowl', controls=['zero_grad'], panels=['loss'])
lab"""
COMPARED = """from gradlab import Recipe, compare
compare('line', {'right': Recipe(lr=0.01), 'forgot': Recipe(lr=0.01, zero_grad=False)}, updates=9)"""


def test_an_exercise_shows_hints_and_a_verdict(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(
        LAB,
        "from gradlab import exercise\nmend = exercise('mended')\nmend",
        "def nothing(model, loss_fn, batches, lr):\n    pass\nmend.check(nothing)",
    ).page
    hint = page.get_by_text("Which of them does nothing?")
    hint.wait_for(state="hidden")
    page.get_by_text("Hint 1 of 2").click()
    hint.wait_for()
    page.get_by_text("Hint 2 of 2").wait_for()
    page.locator("[role=status]", has_text="Not yet. The weights do not move").wait_for()


def test_a_table_that_is_wider_than_a_phone_is_moved_by_itself(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB, COMPARED, width=390)
    page.side_bar(False)
    try:
        box = page.page.get_by_role("group", name="line: table")
        box.wait_for()
        wide, room, right = box.evaluate("b => [b.scrollWidth, b.clientWidth, b.getBoundingClientRect().right]")
        assert wide > room
        assert right <= 390
        box.press("ArrowRight")
        page.page.wait_for_function(
            "() => document.querySelector('[role=group][aria-label=\"line: table\"]').scrollLeft"
        )
        assert all(head.strip() for head in box.locator("th").all_inner_texts())
    finally:
        page.side_bar(True)
