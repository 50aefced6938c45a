"""Every instrument in a browser: its controls by mouse, keys and touch; live, and on a page without a kernel."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gradlab.course as course

from .driving import TIMEOUT_S, Notebook, next_frames

# For each, a slider and another control.
TURNED = {
    "swing": ("lr", "zero_grad"),
    "loss_scale": ("scale", "dtype"),
    "peak": ("batch", "optimizer"),
    "ring_of_orders": ("call", "call"),
    "two_ranks": ("update", "accumulate"),
}
POSIX = pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")
NIGHTLY = {"peak": [], "ring_of_orders": [], "two_ranks": [POSIX]}
EACH = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.nightly, *NIGHTLY[n]]) if n in NIGHTLY else n for n in TURNED]
)
Point = tuple[float, float]


def cell(name: str, settings: str = "") -> str:
    return f"from gradlab.course import {name}\nlab = {name}({settings})\nlab"


def value(page: Notebook, name: str) -> Any:
    page.wait_until_still()
    return page.ask(f"lab.values[{name!r}]")


def middle(part: Any) -> Point:
    box = part.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page: Any, start: Point, end: Point) -> None:
    """Drag by mouse."""
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=8)
    page.mouse.up()


def touch(page: Any, start: Point, end: Point | None = None) -> None:
    """Tap with a finger, or drag with it."""
    session = page.context.new_cdp_session(page)
    for step in range(9 if end else 1):
        x, y = (a + (b - a) * step / 8 for a, b in zip(start, end or start, strict=True))
        kind = "touchMove" if step else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        if end:
            next_frames(page, 2)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that saves the page of an instrument, once."""
    folder = tmp_path_factory.mktemp("pages")
    return cache(lambda name: getattr(course, name)().save(folder / f"{name}.html"))


@contextmanager
def page_of(notebook: Notebook, path: Path) -> Iterator[Any]:
    """A saved page on a phone without network; errors fail the test."""
    page: Any = notebook.page.context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(error.stack))
    try:
        page.set_viewport_size({"width": 390, "height": 800})
        page.context.new_cdp_session(page).send("Emulation.setTouchEmulationEnabled", {"enabled": True})
        page.route(re.compile("^http"), lambda route: route.abort())
        page.goto(path.as_uri())
        yield page
        assert errors == []
    finally:
        page.close()


@EACH
def test_a_control_of_each_kind_by_mouse_and_by_keys(lab_page: Callable[..., Notebook], name: str) -> None:
    """All controls are tested without a browser in tests/course/instruments."""
    page = lab_page(cell(name))
    controls = {control["name"]: control for control in page.ask("[control.data for control in lab.controls()]")}
    for control in (controls[each] for each in TURNED[name]):
        element, options = page.control(control["name"]), [option[1] for option in control.get("options", [])]
        start = value(page, control["name"])
        pictures = page.pictures()
        if control["kind"] == "tick":
            element.click()
            assert value(page, control["name"]) is not start
            element.press("Space")
            expected = start
        elif control["kind"] == "choice":
            element.select_option(label=control["options"][-1][0])
            assert value(page, control["name"]) == options[-1]
            element.press("ArrowUp")
            expected = options[-2]
        else:
            box = element.bounding_box()
            page.page.mouse.click(box["x"] + box["width"] - 1, box["y"] + box["height"] / 2)
            assert value(page, control["name"]) == (options[-1] if options else control["high"])
            element.press("Home")
            expected = options[0] if options else control["low"]
        assert value(page, control["name"]) == expected
        assert (page.pictures() == pictures) == (expected == start)
        assert page.page.locator(".gl-state").inner_text().split() == page.ask("lab._now().state").split()
        assert page.code() == page.ask("lab._now().code").rstrip("\n") + "\n"


@pytest.mark.parametrize("name", ["ring_of_orders"])
def test_a_page_without_a_kernel_is_small_and_plays(
    notebook: Notebook, saved: Callable[[str], Path], name: str
) -> None:
    """By touch and by keys; its text is that of the instrument."""
    instrument = getattr(course, name)()
    start = dict(instrument.values)
    assert saved(name).stat().st_size < 500_000
    recorded: dict[str, set[Any]] = {control: {value} for control, value in start.items()}
    for settings in instrument.recorded():
        if len(other := [control for control in settings if settings[control] != start[control]]) == 1:
            recorded[other[0]].add(settings[other[0]])
    slider, other = ({each.name: each.data for each in instrument.controls()}[each] for each in TURNED[name])
    with page_of(notebook, saved(name)) as page:

        def wait_for(**settings: Any) -> None:
            page.locator(".gl-state").filter(has_text=instrument.render({**start, **settings}).state).wait_for()

        wait_for()
        element, start_value = page.locator(f"[name={other['name']}]"), start[other["name"]]
        if other["kind"] == "tick":
            element.scroll_into_view_if_needed()
            touch(page, middle(element))
            wait_for(**{other["name"]: not start_value})
            element.press("Space")
        elif other["kind"] == "choice" and len(recorded[other["name"]]) > 1:
            for option in sorted(recorded[other["name"]], key=lambda each: each == start_value):
                element.select_option(
                    label=next(label for label, option_value in other["options"] if option_value == option)
                )
                wait_for(**{other["name"]: option})
        wait_for()
        element = page.locator(f"[name={slider['name']}]")
        element.scroll_into_view_if_needed()
        box, options = element.bounding_box(), [option for _, option in slider.get("options", [])]
        first, *_, last = sorted(recorded[slider["name"]], key=options.index if options else float)
        touch(page, (box["x"] + box["width"] - 2, box["y"] + box["height"] / 2))
        wait_for(**{slider["name"]: last})
        element.press("Home")
        wait_for(**{slider["name"]: first})
        if "every" in slider:
            page.get_by_label(f"play {slider['label']}").click()
            page.wait_for_function(
                "name => Number(document.querySelector(`[name=${name}]`).value) > 1", arg=element.get_attribute("name")
            )
            page.get_by_label(f"pause {slider['label']}").click()


# The swing ------------------------------------------------------------------------------------------------------------


def test_the_picture_follows_the_hand_and_nothing_queues(lab_page: Callable[..., Notebook]) -> None:
    """While a slider is dragged, at most one request is unanswered, and the newest value is shown last."""
    page = lab_page(cell("swing", "lr=0.5"))
    box = page.control("lr").bounding_box()
    y = box["y"] + box["height"] / 2
    page.page.mouse.move(box["x"] + 0.2 * box["width"], y)
    page.page.mouse.down()
    page.wait_until_still()
    page.page.evaluate("() => { window.onTheirWay.clear(); window.mostAtOnce = 0; }")
    pictures, end = set(), time.monotonic() + TIMEOUT_S
    for step in itertools.chain(range(20), itertools.cycle([*range(19, 0, -1), *range(20)])):
        page.page.mouse.move(box["x"] + (0.2 + 0.03 * step) * box["width"], y)
        pictures.add(page.pictures()[1])
        if step == 19 and (len(pictures) > 2 or time.monotonic() > end):
            break
    page.page.mouse.up()
    final = value(page, "lr")
    assert page.page.evaluate("() => window.mostAtOnce") == 1
    assert len(pictures) > 2, "it moves while the hand does"
    assert float(page.control("lr").input_value()) == final
    page.wait_for_text(re.escape(f"lr × curvature = {final:g}:"))


@pytest.mark.nightly
def test_a_page_says_what_it_does_not_hold(notebook: Notebook, saved: Callable[[str], Path]) -> None:
    with page_of(notebook, saved("swing")) as page:
        state = page.locator(".gl-state")
        state.filter(has_text="swings for ever").wait_for()
        page.locator("[name=zero_grad]").click()
        page.locator("[name=lr]").press("End")
        state.filter(has_text="lr × curvature = 4.5: the weight runs away").wait_for()
        page.locator("[name=curvature]").press("End")  # recorded with another lr only
        page.locator(".gl-note").filter(has_text="another lr").wait_for()
        state.filter(has_text="lr × curvature = 0.5: the weight settles").wait_for()
        link = page.evaluate("() => location.href")  # page.url follows a change only later
        page.goto("about:blank")
        page.goto(link)  # the settings are in the address
        state.filter(has_text="lr × curvature = 0.5: the weight settles").wait_for()


# The ring of orders ---------------------------------------------------------------------------------------------------


def call(root: Any, index: int) -> Any:
    return root.locator(".gl-chip-call").nth(index)


def code_order(page: Notebook) -> list[str]:
    """Return the order of the calls in the code pane's loop."""
    names = {"optimizer.zero_grad()": "zero_grad", "loss.backward()": "backward", "optimizer.step()": "step"}
    lines = [line.strip() for line in page.code().splitlines() if line.startswith("    ")]
    return [names.get(line, "forward") for line in lines]


def test_calls_are_dragged_left_out_and_added_by_mouse(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(cell("ring_of_orders"))
    page.wait_for_text("Right. The same weights as the usual loop")
    before = page.pictures()
    drag(page.page, middle(call(page.root, 0)), middle(call(page.root, 2)))
    page.wait_for_text("Wrong. The weights never move")
    assert value(page, "order") == "forward backward zero_grad step"
    assert code_order(page) == ["forward", "backward", "zero_grad", "step"]
    assert all(old != new for old, new in zip(before, page.pictures(), strict=True))
    x, y = middle(call(page.root, 2))
    drag(page.page, (x, y), (x, y + 130))
    page.wait_for_text("59 of 60 steps apply a gradient that was applied before")
    assert code_order(page) == ["forward", "backward", "step"]
    page.root.get_by_label("add zero_grad at the end").click()
    page.wait_for_text("Right. The same weights")
    page.root.get_by_label("add step at the end").click()
    page.wait_until_still()
    assert code_order(page) == ["forward", "backward", "step", "zero_grad", "step"]


def test_calls_are_moved_by_keys_and_the_loop_is_stepped(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(cell("ring_of_orders"))
    keys = page.page.keyboard
    call(page.root, 3).focus()
    for _ in range(3):
        keys.press("ArrowLeft")
    page.wait_for_text("Harmless. The weights of the usual loop, 1 update late")
    assert code_order(page) == ["step", "zero_grad", "forward", "backward"]
    assert page.page.evaluate("() => document.activeElement.innerText") == "step"
    keys.press("Delete")
    page.wait_for_text("No step\\(\\) is called")
    page.control("call").focus()
    keys.press("Home")
    page.wait_for_text("Before the loop")
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    page.wait_for_text("Turn 1, forward: loss of batch 1")
    assert page.lines("lit") == [5]


# Two ranks ------------------------------------------------------------------------------------------------------------
