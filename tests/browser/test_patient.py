"""A patient in a browser: edit, run, be told why, ask for the cure; by mouse and by keys; a page without a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradlab.course import Patient

from .driving import Notebook

CELL = "import torch\ntorch.set_num_threads(1)\nfrom gradlab.course import Patient\nlab = Patient('the-flat-loss')\nlab"


def field(page: Notebook) -> Any:
    return page.root.locator(".gl-editor textarea")


def test_by_mouse_edit_run_and_be_cured(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    page.wait_for_words("As it came: 96 updates of SGD")
    assert page.lines("wrong") == [6]
    assert "I have tried lr from 0.001 to 10" in page.words()
    assert "nowhere between them" not in page.page.content()  # the cure's words
    text = page.code()
    page.button("Edit the loop").click()
    field(page).fill(text.replace("lr=0.2", "lr=5.0"))
    page.button("Run this loop").click()
    page.wait_for_words("Yours: 96 updates")
    assert "Not cured yet." in page.words()
    page.button("Edit the loop").click()
    field(page).fill(
        text.replace("    optimizer.zero_grad()\n", "").replace("    loss =", "    optimizer.zero_grad()\n    loss =")
    )
    page.button("Run this loop").click()
    page.wait_for_words("Cured: the doctor finds nothing")
    assert page.lines("wrong") == []
    page.button("Edit the loop").click()
    page.button("Show the cure").click()  # it closes the field, so that the cured loop is seen
    page.wait_for_words("nowhere between them")
    assert not field(page).is_visible()


def test_by_keys_with_a_mistake_on_the_way(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    page.wait_for_words("As it came: 96 updates of SGD")
    page.button("Edit the loop").focus()
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("ControlOrMeta+A")
    page.page.keyboard.type("model = build(")
    page.page.keyboard.press("ControlOrMeta+Enter")
    page.wait_for_words("Line 1 is not valid Python")
    assert field(page).input_value() == "model = build("  # kept open, to be mended
    page.page.keyboard.type(")\nmodell.train()")
    page.page.keyboard.press("ControlOrMeta+Enter")
    page.wait_for_words("line 2 with NameError")
    assert page.lines("wrong") == [2]
    page.button("Show the cure").focus()
    page.page.keyboard.press("Enter")
    page.wait_for_words("Cured: 96 updates of SGD")
    page.control("update").focus()
    page.page.keyboard.press("End")
    page.wait_for_words(r"At update \d+ .grad holds batch")


def test_a_page_without_a_kernel(notebook: Notebook, tmp_path: Path) -> None:
    address = Patient("the-flat-loss").save(tmp_path / "patient.html").as_uri()
    page = notebook.page.context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(error.stack))
    try:
        page.route(re.compile("^http"), lambda route: route.abort())
        page.goto(address)
        page.locator(".gl-state").filter(has_text="As it came: 96 updates of SGD").wait_for()
        assert page.get_by_role("button", name="Edit the loop").count() == 0
        shown = page.locator(".gl-slider .gl-value").inner_text()
        assert f"At update {shown} .grad holds" in page.locator(".gl-state").inner_text()
        assert page.locator("[name=update]").get_attribute("aria-valuetext") == shown
        page.locator("[name=loop]").select_option(label="cured")
        page.locator(".gl-note").filter(has_text="Cured: the doctor finds nothing").wait_for()
        assert errors == []
    finally:
        page.close()
