"""Two ranks in a browser: every control by mouse, keys and finger; live, and on a page without a kernel."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlab.course import two_ranks

from .driving import Notebook

pytestmark = pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")
CELL = "from gradlab.course import two_ranks\nlab = two_ranks()\nlab"


def place(page: Notebook, id: str) -> tuple[float, float]:
    """Where a mark of the panel of messages lies on the screen."""
    (x, y), *_ = page.points("messages", id)
    box = page.panel("messages").bounding_box()
    assert box is not None
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


def touch_drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag with one finger."""
    session = page.context.new_cdp_session(page)
    for step in range(7):
        x, y = (a + (b - a) * step / 6 for a, b in zip(start, end, strict=True))
        kind = "touchMove" if step else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        page.wait_for_timeout(30)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_by_mouse_and_keys(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    page.wait_for_words("Update 1 of 6, backward: before any message")
    before = page.pictures()
    page.control("moment").focus()
    page.page.keyboard.press("ArrowRight")
    page.wait_for_words("both get the mean")
    assert before != page.pictures()
    page.control("forgets").select_option("both")
    for _ in range(2):
        page.control("moment").focus()
        page.page.keyboard.press("ArrowRight")
    page.wait_for_words("both ranks forget it: .grad is")
    assert "is forgotten" in page.code()
    page.control("batches").select_option("12 and 4")
    page.control("accumulate").select_option("3 micro-batches")
    page.control("no_sync").select_option("all but the last")
    page.page.wait_for_timeout(300)
    assert page.ask("lab.values") == {
        "moment": 5,
        "accumulate": 3,
        "no_sync": "all but the last",
        "forgets": "both",
        "batches": "12 and 4",
    }
    page.wait_for_words("inside no_sync.*nothing is sent")


def test_the_moment_is_dragged_by_mouse_and_by_finger(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    page.wait_for_words("Update 1 of 6, backward")
    page.panel("messages").scroll_into_view_if_needed()
    (x, y), (end, _) = place(page, "now mark"), place(page, "11")
    page.page.mouse.move(x, y + 30)
    page.page.mouse.down()
    page.page.mouse.move(end, y + 30, steps=5)
    page.page.mouse.up()
    page.wait_for_words("Update 3 of 6, all-reduce")
    assert page.ask("lab.values['moment']") == 11
    (x, y), (end, _) = place(page, "now mark"), place(page, "23")
    touch_drag(page.page, (x, y + 30), (end, y + 30))
    page.wait_for_words("Update 6 of 6, all-reduce")


def test_it_plays(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page("from gradlab.course import two_ranks\nlab = two_ranks(moment=21)\nlab")
    page.wait_for_words("Update 6 of 6, zero_grad")
    page.root.locator("[aria-label='play statement']").click()
    page.wait_for_words("Update 6 of 6, step")


def test_a_page_without_a_kernel(notebook: Notebook, tmp_path: Path) -> None:
    """With the network off."""
    path = two_ranks().save(tmp_path / "ranks.html")
    assert path.stat().st_size < 500_000
    page: Any = notebook.page.context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(error.stack))
    try:
        page.route(re.compile("^http"), lambda route: route.abort())
        page.goto(path.as_uri())
        state = page.locator(".gl-state")
        state.filter(has_text="Update 1 of 6, backward").wait_for()
        page.locator("[name=moment]").focus()
        page.keyboard.press("ArrowRight")
        state.filter(has_text="both get the mean").wait_for()
        page.locator("[name=forgets]").select_option("rank 1")
        page.locator("[name=moment]").focus()
        page.keyboard.press("End")
        state.filter(has_text="6 all-reduces, 48 bytes from each rank so far").wait_for()
        assert errors == []
    finally:
        page.close()
