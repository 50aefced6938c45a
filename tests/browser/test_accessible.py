"""Accessibility of a lab: all of it by keyboard, a ring around the focus, texts that are read out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .driving import Notebook, violations

LAB = "from gradlab import Lab, Recipe\nlab = Lab({})\nlab"
CONTROLS = "select, input, button, textarea, canvas, pre .line"
ALL = f"[...document.querySelectorAll('.gradlab :is({CONTROLS})')]"
REACHABLE = f"() => {ALL}.flatMap((e, i) => e.getClientRects().length && !e.disabled && e.tabIndex >= 0 ? [i] : [])"
FOCUSED = f"""() => {{
  const it = document.activeElement, style = getComputedStyle(it);
  return [{ALL}.indexOf(it), it.matches(':focus-visible'), style.outlineStyle, parseFloat(style.outlineWidth)];
}}"""


@pytest.mark.nightly
def test_axe_finds_nothing_while_a_loop_is_edited_and_wrong(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'bowl'"))
    page.button("Edit the loop").click()
    page.root.locator("textarea").fill("for x in")
    page.button("Run this loop").click()
    page.wait_for_text("Your loop stopped at line 1")
    assert violations(page.page, ".gradlab") == []


def test_tab_reaches_every_control_with_a_ring_of_three_pixels(lab_page: Callable[..., Notebook]) -> None:
    """Its colour is tested in each theme in tests/front."""
    page = lab_page(LAB.format("'digits', Recipe(accumulate=2)") + ".run(3)")
    reachable = page.page.evaluate(REACHABLE)
    assert len(reachable) == 10 + 3 + 1 + 4, "controls, Play, Reset and more, one line of the loop, panels"
    page.button("more").click()
    reachable = page.page.evaluate(REACHABLE)
    assert len(reachable) == 10 + 3 + 4 + 1 + 4, "and the controls behind it"
    page.control("task").focus()
    for index in reachable:
        reached, visible, style, width = page.page.evaluate(FOCUSED)
        assert reached == index
        assert (visible, style) == (True, "solid"), index
        assert width >= 3, index
        page.page.keyboard.press("Tab")


def test_play_is_silent_and_a_new_warning_is_read_out_once(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    page.evaluate(
        "lab => { window.read = []; new MutationObserver(() => window.read.push("
        "lab.querySelector('[aria-live]').textContent)).observe(lab.querySelector('[aria-live]'), {childList: true}); }"
    )
    assert page.root.locator("[aria-live], [role=alert], [role=status]").count() == 1
    page.button("Play").click()
    page.wait_for_updates(40)
    assert page.page.evaluate("() => window.read") == []
    page.turn("zero_grad", False)
    page.root.locator(".gl-chip").wait_for()
    page.wait_for_updates(page.updates() + 40)
    read, *more = page.page.evaluate("() => window.read")
    assert more == []
    assert read.startswith("Warning: Step ")
    page.button("Pause").click()
    page.wait_until_still()
    _, read = page.page.evaluate("() => window.read")
    assert read.strip() == page.text().splitlines()[0]


def test_the_focus_is_never_lost_or_stolen(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    page.button("Play").focus()
    page.page.keyboard.press("Enter")
    page.wait_for_updates(10)
    for label, key in (("zero_grad", " "), ("AMP", "ArrowDown"), ("task", "ArrowDown")):
        page.control(label).focus()
        page.page.keyboard.press(key)
        page.wait_for_updates(page.updates() + 3)  # by then the turn has been answered
        name = page.control(label).get_attribute("name")
        assert page.page.evaluate("() => document.activeElement.name") == name
    page.button("Edit the loop").focus()
    page.page.keyboard.press("Enter")
    page.page.keyboard.type("# mine")
    assert page.page.evaluate("() => document.activeElement.tagName") == "TEXTAREA"
    page.button("Cancel").click()
    assert page.page.evaluate("() => document.activeElement.textContent") == "Edit the loop"
