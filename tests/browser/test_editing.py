"""The code pane as an editor: a learner's own loop runs, and a mistake in it is told with its line and does no harm."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradlab import Recipe

from .driving import Notebook

LAB = "from gradlab import Lab, Recipe\nlab = Lab('bowl', Recipe(lr=0.2))\nlab"
SOURCE = Recipe(lr=0.2).source()
WEIGHTS = "[p.tolist() for p in lab.runner.model.parameters()]"


@pytest.fixture
def page(lab_page: Callable[..., Notebook]) -> Notebook:
    """A Lab after one update."""
    page = lab_page(LAB)
    page.button("1 update").click()
    page.wait_for_words("update 1 ")
    return page


def edit(page: Notebook, text: str) -> None:
    """Put this text in the place of the loop and run it; if it can begin, it plays."""
    page.button("Edit the loop").click()
    field = page.page.locator(".gradlab textarea")
    field.wait_for()
    assert field.input_value() == page.code()
    field.fill(text)
    page.button("Run this loop").click()


def wrong_numbers(page: Notebook) -> list[str]:
    """What stands beside the lines of the field that are marked as wrong."""
    return [str(text) for text in page.root.locator(".gl-numbers .wrong").all_inner_texts()]


def still_works(page: Notebook) -> None:
    """Give the Lab a loop without mistakes and see it train."""
    updates = page.updates()
    page.button("1 update").click()
    page.wait_for_updates(updates + 1)
    page.turn("lr", 0.1)
    page.wait_for_code(Recipe(lr=0.1).source())
    page.button("1 update").click()
    page.wait_for_updates(updates + 2)


def test_syntax_error_names_its_line(page: Notebook) -> None:
    weights = page.ask(WEIGHTS)
    edit(page, SOURCE.replace("loss.backward()", "loss.backward("))
    page.wait_for_words(r"Your loop stopped at line 9: ")
    page.wait_until_still()
    assert page.page.locator(".gradlab textarea").is_visible(), "what was typed is not thrown away"
    assert wrong_numbers(page) == ["✗ 9"]
    assert page.button("Play").is_visible()
    assert page.ask("lab.runner.source") == SOURCE
    assert page.ask(WEIGHTS) == weights
    page.button("Cancel").click()
    page.button("Edit the loop").wait_for()
    assert page.code() == SOURCE
    still_works(page)


def test_runtime_error_names_its_line(page: Notebook) -> None:
    weights = page.ask(WEIGHTS)
    edit(page, SOURCE.replace("optimizer.step()", "optimizer.stp()"))
    page.wait_for_words(r"Your loop stopped at line 10: AttributeError.*stp")
    page.button("Play").wait_for()
    page.wait_until_still()
    field = page.page.locator(".gradlab textarea")
    assert field.input_value() == SOURCE.replace("optimizer.step()", "optimizer.stp()")
    assert wrong_numbers(page) == ["✗ 10"]
    assert page.code() == SOURCE
    assert page.ask(WEIGHTS) == weights
    assert page.updates() == 1
    still_works(page)


def test_error_while_playing_stops_the_clock(page: Notebook) -> None:
    edit(page, SOURCE.replace("loss.backward()", "loss.backward(); assert epoch < 2"))
    page.wait_for_words("line 9: AssertionError")
    page.button("Play").wait_for()
    assert page.lines("wrong") == [9]


def test_a_good_edit_plays(page: Notebook) -> None:
    text = SOURCE.replace("loss.backward()", "for param in model.parameters():\n            param.grad = 0 * param")
    weights = page.ask(WEIGHTS)
    edit(page, text)
    page.wait_for_words("This is your own loop")
    assert page.code() == text
    assert set(page.lines("changed")) == {9, 10}
    page.wait_for_updates(6)
    page.button("Pause").click()
    page.wait_until_still()
    assert page.ask(WEIGHTS) == weights, "steps along nothing"
    page.turn("zero_grad", False)
    page.wait_for_code(Recipe(lr=0.2, zero_grad=False).source())
    assert page.ask("lab.runner.edited") is False


def test_a_draft_outlives_cancel_switches_and_reset(page: Notebook) -> None:
    field = page.page.locator(".gradlab textarea")
    page.button("Edit the loop").click()
    field.fill("my own idea")
    for act in (
        lambda: page.button("Cancel").click(),
        lambda: page.turn("zero_grad", False),
        lambda: page.button("1 update").click(),
        lambda: page.button("Reset").click(),
        lambda: page.turn("task", "line"),
    ):
        act()
        page.wait_until_still(0.3)
        if not field.is_visible():
            page.button("Edit the loop").click()
        assert field.input_value() == "my own idea"
    page.button("Start from the loop as it runs").click()
    assert field.input_value() == page.code() == Recipe(lr=0.01, zero_grad=False).source()
    page.button("Cancel").click()
    page.button("1 update").click()
    page.wait_for_updates(1)
