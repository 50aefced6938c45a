"""Everybody can use it: no finding of axe-core, all of it by keyboard, a ring around what has the focus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from .driving import Notebook

LAB = "from gradlab import Lab, Recipe\nlab = Lab({})\nlab"
LABS = "from gradlab import Lab, Recipe\nfrom gradlab.course import ForecastLab\n"
CASES = {
    "lab": (LABS + "Lab('digits', Recipe(zero_grad=False)).run(5)", ".gradlab"),
    "two weights": (LABS + "Lab('bowl', Recipe(amp='fp16', accumulate=2)).run(5)", ".gradlab"),
    "forecast": (LABS + "ForecastLab('llama-8b', context=128).run()", ".gradlab"),
    "swing": ("from gradlab.course import swing\nswing(lr=0.3)", ".gradlab"),
    "compare": (
        "from gradlab import Recipe, compare\ncompare('line', {'a': Recipe(lr=0.01)}, updates=5)",
        ".jp-OutputArea-output:has(.gl-themed)",
    ),
    "predict, chosen": (
        "from gradlab import predict\nasked = predict('03/a-quarter-of-lr')\nasked.choose(asked.options[0])\nasked",
        ".gl-bet[data-settled]",
    ),
    "exercise": (
        "from gradlab import exercise\n"
        "def nothing(model, loss_fn, batches, lr):\n    pass\nexercise('mended').check(nothing)",
        ".jp-OutputArea-output:has([role=status])",
    ),
}  # fmt: skip
FOCUSED = """() => {
  const it = document.activeElement, style = getComputedStyle(it);
  const box = it.matches('textarea') ? getComputedStyle(it.parentElement) : style;
  return [it.outerHTML.slice(0, 150), it.matches(':focus-visible'), box.outlineStyle, parseFloat(box.outlineWidth)];
}"""


def violations(page: Notebook, inside: str) -> list[str]:
    """What axe-core finds inside."""
    found: Any = Axe().run(page.page, context=inside).response
    return [
        f"{each['id']} ({each['impact']}): {[node['html'][:120] for node in each['nodes']]}"
        for each in found["violations"]
    ]


@pytest.mark.parametrize("case", CASES)
def test_axe_finds_nothing(lab_page: Callable[..., Notebook], case: str) -> None:
    cell, inside = CASES[case]
    page = lab_page(LAB.format("'line', controls=['lr'], panels=['loss']"), cell)
    page.page.wait_for_selector(inside)
    try:
        for theme in ("Light", "Dark"):
            page.theme(theme)
            page.page.wait_for_timeout(500)
            assert violations(page, inside) == []
    finally:
        page.theme("Light")


def test_axe_finds_nothing_while_a_loop_is_edited_and_wrong(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'bowl'"))
    page.button("Edit the loop").click()
    page.root.locator("textarea").fill("for x in")
    page.button("Run this loop").click()
    page.wait_for_words("Your loop stopped at line 1")
    assert violations(page, ".gradlab") == []


def test_tab_goes_round_with_a_ring_of_three_pixels(lab_page: Callable[..., Notebook]) -> None:
    """Its colour is tried in every theme by itself (tests/front)."""
    page = lab_page(LAB.format("'digits', Recipe(accumulate=2)"))
    page.control("task").focus()
    for _ in range(21):
        name, visible, style, width = page.page.evaluate(FOCUSED)
        assert visible, name
        assert style == "solid"
        assert width >= 3, name
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
    assert read.strip() == page.words().splitlines()[0]


def test_the_focus_is_never_lost_or_stolen(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    page.button("Play").focus()
    page.page.keyboard.press("Enter")
    page.wait_for_updates(10)
    for label, key in (("zero_grad", " "), ("AMP", "ArrowDown"), ("clip", "ArrowDown"), ("task", "ArrowDown")):
        page.control(label).focus()
        page.page.keyboard.press(key)
        page.page.wait_for_timeout(500)
        name = page.control(label).get_attribute("name")
        assert page.page.evaluate("() => document.activeElement.name") == name
    page.button("Edit the loop").focus()
    page.page.keyboard.press("Enter")
    page.page.keyboard.type("# mine")
    assert page.page.evaluate("() => document.activeElement.tagName") == "TEXTAREA"
    page.button("Cancel").click()
    assert page.page.evaluate("() => document.activeElement.textContent") == "Edit the loop"


@pytest.mark.parametrize("media", [{"forced_colors": "active"}, {"reduced_motion": "reduce"}, {"contrast": "more"}])
def test_it_plays_with_the_settings_of_the_system(lab_page: Callable[..., Notebook], media: dict[str, Any]) -> None:
    page = lab_page(LAB.format("'bowl'"))
    page.page.emulate_media(**media)
    try:
        page.button("Play").click()
        page.wait_for_updates(5)
        page.button("Pause").click()
        page.wait_until_still()
        assert violations(page, ".gradlab") == []
    finally:
        page.page.emulate_media(forced_colors="none", reduced_motion="reduce", contrast="no-preference")
