"""The loss scale in a browser: every control by mouse, keys and finger, the mark in the panel, and a page by itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlab.course import loss_scale

from .driving import Notebook

CELL = "from gradlab.course import loss_scale\nlab = loss_scale(model='digits', growth_interval=5)\nlab"


def handle(page: Notebook) -> tuple[float, float]:
    """Where the mark to drag lies on the screen."""
    (x, y), *_ = page.points("gradients", "handle")
    box = page.panel("gradients").bounding_box()
    assert box is not None
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


def doubling(page: Notebook) -> float:
    """How far apart two powers of two are on the screen."""
    box = page.panel("gradients").bounding_box()
    assert box is not None
    overflow, subnormal = (page.points("gradients", f"zone {name}") for name in ("overflow", "subnormal"))
    return (overflow[0][0] - subnormal[1][0]) / 30 * float(box["width"])


def touch_drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag with one finger."""
    session = page.context.new_cdp_session(page)
    steps = 6
    for step in range(steps + 1):
        x, y = (a + (b - a) * step / steps for a, b in zip(start, end, strict=True))
        kind = "touchMove" if step else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        page.wait_for_timeout(30)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_the_mark_is_dragged_by_mouse_and_by_finger(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    page.wait_for_words("fp16, loss scale 1: of 13,196 gradients, 2 ")
    page.wait_until_still()  # until then the page may still move under the hand
    x, y = handle(page)
    mouse = page.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + 8 * doubling(page), y, steps=8)
    mouse.up()
    page.wait_for_words("fp16, loss scale 256: of 13,196 gradients, none become 0")
    page.wait_until_still()
    assert page.ask("lab.values['scale']") == 256
    assert page.root.locator("[name=scale]").get_attribute("aria-valuetext") == "256"
    before = page.pictures()
    start = handle(page)
    touch_drag(page.page, start, (start[0] + 16 * doubling(page), start[1]))
    page.wait_for_words("2\u00b2\u2074: .* 13,196 \\(100%\\) become inf or NaN")
    page.wait_until_still()
    assert page.ask("lab.values['scale']") == 2**24
    assert page.pictures()[0] != before[0]
    assert page.pictures()[1] == before[1], "the walk of the scaler has nothing to do with it"
    page.panel("gradients").focus()
    page.page.keyboard.press("Shift+ArrowLeft")
    page.wait_until_still()
    assert page.ask("lab.values['scale']") < 2**24


def test_every_control_by_mouse_and_by_keys(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    page.control("scale").focus()
    for _ in range(4):
        page.page.keyboard.press("ArrowRight")
    page.wait_for_words("loss scale 16: ")
    assert "(loss * 16).backward()" in page.code()
    page.control("dtype").select_option("bf16")
    page.wait_for_words("bf16, loss scale 16: of 13,196 gradients, none become 0, none have fewer digits")
    assert "torch.bfloat16" in page.code()
    page.control("dtype").focus()
    page.page.keyboard.press("ArrowUp")
    page.wait_for_words("fp16, loss scale 16: ")
    page.control("model").select_option(label="six sigmoid layers")
    page.wait_for_words("of 24,842 gradients")
    page.control("model").select_option(label="digits, loss x 0.00001")
    page.wait_for_words("of 13,196 gradients, 3,370 ")
    page.wait_for_words("would make 3,378 of them 0")
    page.control("init_scale").select_option(label="1")
    page.wait_for_words("after update 50: loss scale 1,024; 0 of 50 steps skipped")
    assert "init_scale=1," in page.code()
    page.control("growth_interval").select_option(label="2,000")
    page.wait_for_words("GradScaler, after update 50: loss scale 1; ")
    box = page.control("update").bounding_box()
    assert box is not None
    page.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_words("GradScaler, after update (24|25|26): ")
    middle = box["y"] + box["height"] / 2
    touch_drag(page.page, (box["x"] + box["width"] / 2, middle), (box["x"] + 1, middle))
    page.wait_for_words("GradScaler, after update 0: ")


def test_it_plays(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    page.wait_for_words("after update 50: loss scale 524,288; 5 of 50 steps skipped")
    page.root.locator("button[aria-label='play update']").click()
    page.wait_for_words("after update 2: loss scale 65,536; 0 of 2 steps skipped")
    page.wait_for_words("after update 6: loss scale 131,072")
    page.root.locator("button[aria-label='pause update']").click()
    page.wait_until_still()
    assert page.ask("lab.values['update']") < 50


@pytest.mark.parametrize("width", [390, 700, 1366])
def test_it_fits(lab_page: Callable[..., Notebook], width: int) -> None:
    page = lab_page(CELL, width=width)
    page.side_bar(False)
    try:
        wide = page.evaluate("lab => [lab.scrollWidth, lab.clientWidth]")
        assert wide[0] <= wide[1]
    finally:
        page.side_bar(True)


def test_a_page_without_a_kernel(notebook: Notebook, tmp_path: Path) -> None:
    address = loss_scale().save(tmp_path / "scale.html").as_uri()
    page: Any = notebook.page.context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(error.stack))
    try:
        page.route(re.compile("^http"), lambda route: route.abort())
        page.goto(address)
        state = page.locator(".gl-state")
        state.filter(has_text="of 13,196 gradients, 12,908 (97.8%) become 0").wait_for()
        page.locator("[name=scale]").focus()
        for _ in range(16):
            page.keyboard.press("ArrowRight")
        state.filter(has_text="loss scale 65,536: of 13,196 gradients, 4 (0.03%) become 0").wait_for()
        page.locator("[name=update]").focus()
        page.keyboard.press("Home")
        state.filter(has_text="GradScaler, after update 0: loss scale 65,536").wait_for()
        assert errors == []
    finally:
        page.close()
