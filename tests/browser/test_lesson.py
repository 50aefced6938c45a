"""What a lesson asks, in a browser: a question is answered by a click and kept, an exercise answers in words."""

from __future__ import annotations

from collections.abc import Callable

from .driving import Notebook

ASKED = """from gradlab import predict, Lab
lab = Lab('bowl', controls=['zero_grad'], panels=['loss'])
lab"""
QUESTION = """asked = predict('What does `backward()` do?', ['It writes', 'It adds'], 'It adds', 'A buffer that adds.')
asked"""


def test_a_guess_is_made_by_a_click_and_kept_when_the_cell_runs_again(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(ASKED, "from gradlab.widgets.guesses import GUESSES; GUESSES.__init__()", QUESTION).page
    page.get_by_role("button", name="It writes").click()
    page.get_by_text("You said: It writes. It is: It adds.").wait_for()
    page.get_by_text("Your guesses so far: 0 of 1 right.").wait_for()
    assert page.get_by_role("button", name="It adds").is_disabled()
    assert page.locator(".gl-words code", has_text="backward()").first.is_visible()


def test_a_guess_is_there_again_on_a_narrow_screen(lab_page: Callable[..., Notebook]) -> None:
    notebook = lab_page(
        ASKED, "from gradlab.widgets.guesses import GUESSES; GUESSES.__init__()", QUESTION, width=390, height=844
    )
    button = notebook.page.get_by_role("button", name="It adds")
    button.click()
    notebook.page.get_by_text("Yes.").wait_for()
    box = button.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    again = lab_page(ASKED, QUESTION)  # the same kernel
    again.page.get_by_text("Your guesses so far: 1 of 1 right.").wait_for()


def test_an_exercise_shows_hints_one_by_one_and_a_verdict_with_a_picture(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(
        ASKED,
        "from gradlab import exercise\nmend = exercise('mended')\nmend",
        "def nothing(model, loss_fn, batches, lr):\n    pass\nmend.check(nothing)",
        "def endless(model, loss_fn, batches, lr):\n    while True:\n        pass\n"
        "from dataclasses import replace\n"
        "replace(mend, definition=replace(mend.definition, seconds=0.5)).check(endless)",
    ).page
    hint = page.get_by_text("Which of them does nothing at all?")
    hint.wait_for(state="hidden")
    page.get_by_text("Hint 1 of 2").click()
    hint.wait_for()
    page.get_by_text("Hint 2 of 2").wait_for()
    page.get_by_text("The weights do not move").wait_for()
    picture = page.locator("[role=status] img").first
    picture.wait_for()
    assert "The weights do not move" in (picture.get_attribute("alt") or "")
    page.get_by_text("It did not end within 0.5 seconds").wait_for()
