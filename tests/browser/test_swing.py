"""The swing in a browser: every control by mouse, keys and finger; live, and on a page without a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlab.course import swing

from .driving import Notebook
from .test_layout import contrast

CELL = "from gradlab.course import swing\nlab = swing(lr=0.5)\nlab"
# The most requests of one lab that were sent since then and are on their way.
ON_THEIR_WAY = """began => {
  const sent = [...window.onTheirWay].filter(([, at]) => at >= began).map(([name]) => name.replace(/ \\d+$/, ''));
  return Math.max(0, ...sent.map(lab => sent.filter(other => other === lab).length));
}"""


def drag_dot(page: Any, canvas: Any, x_from: float, x_to: float, y: float) -> None:
    """Drag along a canvas, from and to shares of its width, at a share of its height."""
    box = canvas.bounding_box()
    places = [(box["x"] + share * box["width"], box["y"] + y * box["height"]) for share in (x_from, x_to)]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=6)
    page.mouse.up()


def test_by_mouse_by_keys_and_in_the_map(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    assert "Without zero_grad, lr × curvature = 0.5: the weight swings for ever" in page.words()
    page.control("zero_grad").click()
    page.wait_for_words("With zero_grad, lr × curvature = 0.5: the weight settles")
    assert "optimizer.zero_grad()" in page.code()
    before = page.pictures()
    page.control("lr").focus()
    for _ in range(3):
        page.page.keyboard.press("ArrowRight")
    page.wait_for_words(r"lr × curvature = 0.53: the weight settles")
    page.control("lr").fill("2.1")
    page.wait_for_words(r"lr × curvature = 2.1: the weight runs away")
    assert page.ask("lab.values['lr']") == 2.1
    assert all(one != other for one, other in zip(before, page.pictures(), strict=True))
    ((x, y),) = page.points("map", "here")
    drag_dot(page.page, page.panel("map"), x, x - 0.2, y)
    page.wait_for_words("the weight settles")
    assert page.ask("lab.values['lr'] < 2.0")
    page.wait_until_still()
    shown = page.root.locator("[name=lr]").get_attribute("aria-valuetext")
    assert shown == f"{page.ask('list(lab.values.values())')[1]:g}"


def test_the_picture_follows_the_hand_and_nothing_queues(lab_page: Callable[..., Notebook]) -> None:
    """While a slider is drawn along, one request at most is on its way, and the newest value is the last one shown."""
    page = lab_page(CELL)
    box = page.control("lr").bounding_box()
    y = box["y"] + box["height"] / 2
    page.page.mouse.move(box["x"] + 0.2 * box["width"], y)
    page.page.mouse.down()
    page.wait_until_still()
    began = page.page.evaluate("() => performance.now()")
    most, pictures = 0, set()
    for step in range(40):
        page.page.mouse.move(box["x"] + (0.2 + 0.015 * step) * box["width"], y)
        most = max(most, int(page.page.evaluate(ON_THEIR_WAY, began)))
        pictures.add(page.pictures()[1])
    page.page.mouse.up()
    page.wait_until_still()
    assert most == 1
    assert len(pictures) > 4, "it moves while the hand does"
    shown = float(page.control("lr").input_value())
    assert page.ask("lab.values['lr']") == shown
    page.wait_for_words(re.escape(f"lr × curvature = {shown:g}:"))
    assert page.root.get_by_role("button", name=re.compile("run up to|optimizer")).count() == 0


def test_the_words_are_read_out_once_they_have_settled(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    assert page.root.locator("output, [aria-live], [role=status], [role=alert]").count() == 1
    page.page.wait_for_timeout(1500)
    read = page.evaluate("""async (lab) => {
      const live = lab.querySelector('[aria-live]'), range = lab.querySelector('[name=lr]'), read = [];
      const watch = new MutationObserver(() => read.push(live.textContent));
      watch.observe(live, {childList: true});
      for (let step = 1; step <= 12; step += 1) {
        range.value = String(0.5 + step / 100);
        range.dispatchEvent(new Event('input', {bubbles: true}));
        await new Promise((done) => setTimeout(done, 50));
      }
      await new Promise((done) => setTimeout(done, 2500));
      watch.disconnect();
      return read;
    }""")
    assert read == [page.page.locator(".gl-state").inner_text()]
    assert "lr × curvature = 0.62:" in read[0]


def test_the_start_is_dragged_in_the_valley(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    ((x, y),) = page.points("valley", "start")
    drag_dot(page.page, page.panel("valley"), x, 0.4, y)
    page.wait_for_words(r"from w = -?0\.\d+: the weight swings")
    page.wait_until_still()
    start = page.ask("lab.values['start']")
    assert -0.7 < start < 0
    assert page.code().startswith(f"w = torch.tensor({start!r}, ")
    page.panel("valley").focus()
    page.page.keyboard.press("Shift+ArrowRight")  # by keys, too
    page.wait_until_still()
    assert page.ask("lab.values['start']") > start


@pytest.mark.parametrize(("width", "theme"), [(1366, "Dark"), (390, "Light")])
def test_it_fits_and_can_be_read(lab_page: Callable[..., Notebook], width: int, theme: str) -> None:
    page = lab_page(CELL, width=width)
    page.theme(theme)
    page.side_bar(False)
    try:
        for what in (".gl-state", ".gl-label", ".gl-value"):
            assert contrast(page, f".gradlab {what}") >= 4.5, what
        wide = page.evaluate("lab => [lab.scrollWidth, lab.clientWidth]")
        assert wide[0] <= wide[1]
    finally:
        page.theme("Light")
        page.side_bar(True)


def test_a_page_without_a_kernel(notebook: Notebook, tmp_path: Path) -> None:
    """By finger and by keys, with the network off; what is not held is said."""
    address = swing().save(tmp_path / "swing.html").as_uri()
    assert (tmp_path / "swing.html").stat().st_size < 500_000
    context = notebook.page.context.browser or notebook.page.context
    page: Any = (
        context.new_page(viewport={"width": 390, "height": 800}, has_touch=True)
        if context is not notebook.page.context
        else context.new_page()
    )
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(error.stack))
    try:
        page.route(re.compile("^http"), lambda route: route.abort())
        page.goto(address)
        state = page.locator(".gl-state")
        state.filter(has_text="swings for ever").wait_for()
        assert page.get_by_role("heading", name="The swing").is_visible()
        page.locator("[name=zero_grad]").click()
        state.filter(has_text="With zero_grad, lr × curvature = 0.1: the weight settles").wait_for()
        page.locator("[name=lr]").focus()
        page.keyboard.press("End")
        state.filter(has_text="lr × curvature = 4.5: the weight runs away").wait_for()
        page.locator("[name=curvature]").focus()
        page.keyboard.press("End")  # held with another lr only
        page.locator(".gl-note").filter(has_text="another lr").wait_for()
        state.filter(has_text="lr × curvature = 0.5: the weight settles").wait_for()
        link = page.url
        page.goto("about:blank")
        page.goto(link)  # the settings are in the address
        state.filter(has_text="lr × curvature = 0.5: the weight settles").wait_for()
        page.goto("about:blank")
        page.goto(address)
        state.filter(has_text="swings for ever").wait_for()
        for name, presses in (("momentum", 5), ("lr", 3)):
            page.locator(f"[name={name}]").focus()
            for _ in range(presses):
                page.keyboard.press("ArrowRight")
        # With momentum 0.5 the page holds 0.2, 0.3 and 0.5, and not 0.4.
        state.filter(has_text="lr × curvature = 0.5, momentum 0.5").wait_for()
        assert page.locator(".gl-note").inner_text() == ""
        assert errors == []
    finally:
        page.close()
