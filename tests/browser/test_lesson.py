"""What a lesson asks, in a browser: an exercise answers in words."""

from __future__ import annotations

from collections.abc import Callable

from .driving import Notebook

LAB = """from gradlab import Lab
lab = Lab('bowl', controls=['zero_grad'], panels=['loss'])
lab"""


def test_an_exercise_shows_hints_one_by_one_and_a_verdict_with_a_picture(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(
        LAB,
        "from gradlab import exercise\nmend = exercise('mended')\nmend",
        "def nothing(model, loss_fn, batches, lr):\n    pass\nmend.check(nothing)",
        "def endless(model, loss_fn, batches, lr):\n    while True:\n        pass\n"
        "from dataclasses import replace\n"
        "replace(mend, definition=replace(mend.definition, seconds=0.5)).check(endless)",
    ).page
    hint = page.get_by_text("Which of them does nothing?")
    hint.wait_for(state="hidden")
    page.get_by_text("Hint 1 of 2").click()
    hint.wait_for()
    page.get_by_text("Hint 2 of 2").wait_for()
    page.get_by_text("The weights do not move").wait_for()
    picture = page.locator("[role=status] img").first
    picture.wait_for()
    assert "The weights do not move" in (picture.get_attribute("alt") or "")
    page.get_by_text("It did not end within 0.5 seconds").wait_for()
