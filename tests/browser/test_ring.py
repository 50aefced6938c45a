"""The ring of orders in a browser: calls dragged by mouse and finger, moved by keys; and a page without a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlab.course import ring_of_orders

from .driving import Notebook
from .test_layout import contrast

CELL = "from gradlab.course import ring_of_orders\nlab = ring_of_orders()\nlab"


def chip(root: Any, at: int) -> Any:
    return root.locator(".gl-chip-call").nth(at)


def middle(part: Any) -> tuple[float, float]:
    box = part.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page: Any, root: Any, at: int, to: tuple[float, float]) -> None:
    """Drag a call by mouse to a place on the screen."""
    page.mouse.move(*middle(chip(root, at)))
    page.mouse.down()
    page.mouse.move(*to, steps=8)
    page.mouse.up()


def touch_drag(page: Any, root: Any, at: int, to: tuple[float, float]) -> None:
    """Drag a call with a finger."""
    session = page.context.new_cdp_session(page)
    (x, y), steps = middle(chip(root, at)), 8
    send: Callable[..., Any] = lambda kind, points: session.send(  # noqa: E731
        "Input.dispatchTouchEvent", {"type": kind, "touchPoints": points}
    )
    send("touchStart", [{"x": x, "y": y}])
    for step in range(1, steps + 1):
        send("touchMove", [{"x": x + (to[0] - x) * step / steps, "y": y + (to[1] - y) * step / steps}])
    send("touchEnd", [])


def code_order(page: Notebook) -> list[str]:
    """The order of the calls in the loop of the code pane."""
    names = {"optimizer.zero_grad()": "zero_grad", "loss.backward()": "backward", "optimizer.step()": "step"}
    lines = [line.strip() for line in page.code().splitlines() if line.startswith("    ")]
    return [names.get(line, "forward") for line in lines]


def test_calls_are_dragged_left_out_and_added_by_mouse(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    page.wait_for_words("Right. The same weights as the usual loop")
    before = page.pictures()
    drag(page.page, page.root, 0, middle(chip(page.root, 2)))
    page.wait_for_words("Wrong. The weights never move")
    page.wait_until_still()
    assert code_order(page) == ["forward", "backward", "zero_grad", "step"]
    assert page.ask("lab.values['order']") == "forward backward zero_grad step"
    assert all(one != other for one, other in zip(before, page.pictures(), strict=True))
    x, y = middle(chip(page.root, 2))
    drag(page.page, page.root, 2, (x, y + 130))
    page.wait_for_words("59 of 60 steps apply a gradient that was applied before")
    assert code_order(page) == ["forward", "backward", "step"]
    page.root.get_by_label("add zero_grad at the end").click()
    page.wait_for_words("Right. The same weights")
    page.root.get_by_label("add step at the end").click()
    page.wait_until_still()
    assert code_order(page) == ["forward", "backward", "step", "zero_grad", "step"]


def test_calls_are_moved_by_keys_and_the_loop_is_stepped(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    keys = page.page.keyboard
    chip(page.root, 3).focus()
    for _ in range(3):
        keys.press("ArrowLeft")
    page.wait_for_words("Harmless. The weights of the usual loop, 1 update late")
    assert code_order(page) == ["step", "zero_grad", "forward", "backward"]
    assert page.page.evaluate("() => document.activeElement.innerText") == "step"
    keys.press("Delete")
    page.wait_for_words("No step\\(\\) is called")
    page.control("call").focus()
    keys.press("Home")
    page.wait_for_words("Before the loop")
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    page.wait_for_words("Turn 1, forward: loss of batch 1")
    assert page.lines("lit") == [5]
    page.root.get_by_label("play call").click()
    page.wait_for_words("Turn 2, zero_grad: clears 1")
    page.root.get_by_label("pause call").click()


def test_the_other_controls(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(
        "from gradlab.course import ring_of_orders\nlab = ring_of_orders(order='step forward backward')\nlab"
    )
    page.control("optimizer").select_option(label="Adam")
    page.wait_for(r"lab => lab.querySelector('pre.gl').innerText.includes('Adam')")
    page.control("layers").select_option(label="one layer")
    page.control("set_to_none").click()
    page.wait_until_still()
    assert page.ask("[lab.values[name] for name in ('optimizer', 'layers', 'set_to_none')]") == ["Adam", 1, False]
    assert page.control("first_loss").is_disabled()
    chip(page.root, 2).focus()
    page.page.keyboard.press("ArrowLeft")
    page.page.keyboard.press("ArrowLeft")
    page.wait_for_words("NameError")
    page.control("first_loss").click()
    page.wait_for_words("outdated|Harmless|Right|Wrong")
    assert "x, y = batches[0]" in page.code()


def test_calls_are_dragged_by_finger(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL, width=420, height=900)
    page.side_bar(False)
    try:
        page.root.evaluate("lab => lab.scrollIntoView()")
        touch_drag(page.page, page.root, 0, middle(chip(page.root, 1)))
        page.wait_for(r"lab => lab.querySelector('pre.gl .line:nth-child(4)').innerText.includes('model(x)')")
        assert code_order(page) == ["forward", "zero_grad", "backward", "step"]
        page.wait_for_words("Right. The same weights")
        x, y = middle(chip(page.root, 1))
        touch_drag(page.page, page.root, 1, (x, y + 250))
        page.wait_for_words("59 of 60 steps")
        assert page.evaluate("lab => [lab.scrollWidth <= lab.clientWidth]") == [True]
    finally:
        page.side_bar(True)


@pytest.mark.parametrize("theme", ["Dark", "Light"])
def test_it_can_be_read(lab_page: Callable[..., Notebook], theme: str) -> None:
    page = lab_page(CELL)
    page.theme(theme)
    try:
        for what in (".gl-state", ".gl-label", ".gl-chip-call", ".gl-value"):
            assert contrast(page, f".gradlab {what}") >= 4.5, what
    finally:
        page.theme("Light")


def test_a_page_without_a_kernel_holds_all_orders(notebook: Notebook, tmp_path: Path) -> None:
    """With the network off: dragged, stepped, and told what is not held."""
    saved = ring_of_orders().save(tmp_path / "ring.html")
    assert saved.stat().st_size < 500_000
    page: Any = notebook.page.context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(error.stack))
    try:
        page.route(re.compile("^http"), lambda route: route.abort())
        page.goto(saved.as_uri())
        root, state = page.locator(".gradlab"), page.locator(".gl-state")
        state.filter(has_text="Right. The same weights").wait_for()
        drag(page, root, 0, middle(chip(root, 2)))
        state.filter(has_text="The weights never move").wait_for()
        chip(root, 2).focus()
        page.keyboard.press("ArrowRight")
        state.filter(has_text="Right. The same weights").wait_for()
        page.locator("[name=call]").focus()
        page.keyboard.press("Home")
        page.locator(".gl-note").filter(has_text="Before the loop").wait_for()
        root.get_by_label("add step at the end").click()  # forward backward step zero_grad step is not recorded
        page.locator(".gl-note").filter(has_text="This page does not hold that").wait_for()
        assert errors == []
    finally:
        page.close()
