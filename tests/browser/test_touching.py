"""Direct manipulation: dragging, zooming, hovering, pressing; by mouse and by keys; and nothing shifts meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from .driving import Notebook

LAB = "from gradlab import Lab, Recipe\nlab = Lab({})\nlab"
WEIGHTS = "[v for p in lab.runner.model.parameters() for v in p.flatten().tolist()]"
DRAWN = "(lambda d, m: (d.width, list(map(float, m.points)), m.drag.x.start, m.drag.x.per_pixel, m.drag.y.start, m.drag.y.per_pixel))(*(lambda d: (d, d.find('now')))(__import__('gradlab.drawing').drawing.draw(__import__('gradlab').scenes.RunScenes(lab.runner).landscape(), *lab.shown.screen.size[:2])))"  # noqa: E501
CELLS = "() => jupyterapp.shell.currentWidget.content.model.sharedModel.cells.map(cell => cell.source)"
PARTS = """lab => [...lab.querySelectorAll('.gl-control, .gl-button, canvas, pre.gl, .gl-state, .gl-note')]
  .filter(part => part.getClientRects().length)
  .map(part => [part.getBoundingClientRect(), part.className])
  .map(([{left, top}, name]) => [name, left, top - lab.getBoundingClientRect().top])"""
# Clicks the button and tells when the loss panel was painted after that, in ms.
PAINTS_AFTER = """lab => new Promise(resolve => {
  const loss = lab.querySelector('canvas'), times = [], clear = CanvasRenderingContext2D.prototype.clearRect;
  let began = Infinity;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    if (this.canvas === loss) times.push(performance.now() - began);
    return clear.apply(this, box);
  };
  setTimeout(() => {
    began = performance.now();
    lab.querySelector('.gl-player .gl-main').click();
    setTimeout(() => {
      CanvasRenderingContext2D.prototype.clearRect = clear;
      resolve(times);
    }, 1500);
  }, 500);
})"""


def place(page: Notebook, panel: str, x: float, y: float) -> tuple[float, float]:
    """A place in a panel, given as shares of its width and height, on the screen."""
    box = page.panel(panel).bounding_box()
    assert box is not None
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


def test_the_weights_are_dragged(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'bowl'"))
    page.button("1 update").click()
    page.wait_for_words("update 1 ")
    width, (x, y), x_start, x_each, y_start, y_each = page.ask(DRAWN)
    box = page.panel("landscape").bounding_box()
    assert box is not None
    scale = box["width"] / width
    mouse = page.page.mouse
    mouse.move(box["x"] + x * scale, box["y"] + y * scale)
    mouse.down()
    mouse.move(box["x"] + (x + 60) * scale, box["y"] + (y + 30) * scale, steps=6)
    mouse.up()
    page.wait_for_words("Begun again from where you put the weights")
    page.wait_until_still()
    now = page.ask(WEIGHTS)
    assert now == pytest.approx([x_start + x_each * (x + 60), y_start + y_each * (y + 30)], abs=3 * abs(x_each))
    assert page.updates() == 0
    page.panel("landscape").focus()
    page.page.keyboard.press("Shift+ArrowLeft")
    page.page.wait_for_timeout(300)
    left = page.ask(WEIGHTS)
    assert left[0] < now[0]
    assert left[1] == pytest.approx(now[1], abs=abs(y_each))
    page.button("Play").click()
    page.wait_for_updates(5)
    page.button("Pause").click()


def test_the_loss_is_zoomed_by_mouse_and_by_keys(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(f"{LAB.format(repr('digits'))}.run(100)")
    page.page.wait_for_timeout(500)  # until it is laid out for the room that there is
    whole = page.pictures()
    mouse = page.page.mouse
    mouse.move(*place(page, "loss", 0.4, 0.5))
    mouse.down()
    mouse.move(*place(page, "loss", 0.6, 0.55), steps=5)
    mouse.up()
    page.page.wait_for_timeout(300)
    low, high = page.ask("lab.shown.screen.zoom")
    assert 10 < low < 50 < high < 90
    page.panel("loss").dblclick(position={"x": 100, "y": 60})
    page.page.wait_for_timeout(300)
    assert page.ask("lab.shown.screen.zoom") is None
    page.panel("loss").focus()
    page.page.keyboard.press("+")
    page.page.wait_for_timeout(300)
    assert page.ask("lab.shown.screen.zoom") is not None
    page.page.keyboard.press("0")
    page.page.wait_for_timeout(300)
    assert page.ask("lab.shown.screen.zoom") is None
    page.page.mouse.move(0, 0)
    page.button("Play").focus()
    page.page.wait_for_timeout(200)
    assert page.pictures()[0] == whole[0]


def test_hovering_shows_words(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(f"{LAB.format(repr('digits'))}.run(50)")
    for name in ("loss", "gradient", "picture", "memory"):
        tip = page.root.locator(f"[data-panel={name}] .gl-tip")
        told = set()
        for y in range(1, 20):
            page.page.mouse.move(*place(page, name, 0.4, y / 20))
            told |= {tip.inner_text()} if tip.is_visible() else set()
        assert any(digit in words for words in told for digit in "0123456789"), name
    page.page.mouse.move(0, 0)
    expect(page.root.locator(".gl-tip:visible")).to_have_count(0)


def test_keys_walk_through_a_panel_and_say_what_is_there(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(f"{LAB.format(repr('digits'))}.run(50)")
    for name in ("loss", "gradient", "picture", "memory"):
        page.panel(name).focus()
        page.page.keyboard.press("ArrowDown")
        said = page.root.locator("[aria-live]").inner_text().strip()
        assert said
        assert said == page.root.locator(f"[data-panel={name}] .gl-tip").inner_text().strip()


def test_a_batch_is_pressed(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(f"{LAB.format(repr('bowl'))}.run(4)")
    page.panel("gradient").focus()
    for _ in range(12):
        page.page.keyboard.press("ArrowDown")
        page.page.keyboard.press("Enter")
    page.wait_for_words("Batch 4 is number .* The newest step has applied it.")


def test_a_line_is_pressed_and_the_loop_runs_up_to_it(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'bowl'"))
    page.root.locator("pre.gl .line").nth(8).click()
    page.wait_for("lab => lab.querySelectorAll('pre.gl .line')[8].classList.contains('lit')")
    assert page.ask("lab.runner.line") == 9
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("Enter")
    page.wait_for_words("update 1 ")
    assert page.lines("lit") == [10]


def test_pause_stops_the_picture_at_once_and_it_ends_where_the_run_ends(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    page.button("Play").click()
    page.wait_for_updates(30)
    times = page.evaluate(PAINTS_AFTER)
    assert sum(time < 0 for time in times) > 5, "it was playing"
    assert sum(time > 50 for time in times) <= 1, f"one last painting, of where the run has ended; got {times}"
    updates, loss = page.ask("lab.runner.updates, lab.runner.record.loss")
    assert page.updates() == updates
    said = str(page.panel("loss").get_attribute("aria-label"))
    assert f"The loss is {float(f'{loss:.3g}'):g}" in said
    assert f"Updates 1 to {updates}" in said
    assert page.root.locator("[aria-live]").inner_text().strip().startswith(f"update {updates} ")


def test_nothing_shifts_when_it_plays_or_warns(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    before = page.evaluate(PARTS)
    page.button("Play").click()
    page.wait_for_updates(10)
    assert page.evaluate(PARTS) == before
    page.turn("zero_grad", False)
    page.root.locator(".gl-chip").wait_for()
    page.turn("zero_grad", True)
    page.root.locator(".gl-chip").wait_for(state="hidden")
    assert page.evaluate(PARTS) == before
    page.button("Pause").click()
    page.wait_until_still()
    assert page.evaluate(PARTS) == before


def test_thirty_quick_switches(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    page.button("Play").click()
    page.wait_for_updates(5)
    for _ in range(15):
        page.control("zero_grad").click()
        page.control("divide_loss").click(force=True, no_wait_after=True) if page.control(
            "divide_loss"
        ).is_enabled() else page.control("set_to_none").dispatch_event("click")
    page.wait_for_updates(page.updates() + 20)
    page.button("Pause").click()
    page.wait_until_still()
    recipe = page.ask("lab.runner.recipe.zero_grad, lab.runner.recipe.set_to_none")
    assert (page.control("zero_grad").is_checked(), page.control("set_to_none").is_checked()) == recipe
    assert recipe[0] is False, "an odd number of times"
    assert page.code() == page.ask("lab.runner.source")


def test_a_list_is_chosen_from_by_arrow_keys(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'bowl'"))
    page.button("Play").click()
    page.wait_for_updates(5)
    page.control("optimizer").focus()
    for name in ("momentum", "adam", "adamw"):
        page.page.keyboard.press("ArrowDown")
        page.wait_for_words(name)
        page.page.wait_for_timeout(200)
        assert page.ask("lab.runner.recipe.optimizer") == name
        assert page.evaluate("() => document.activeElement.name") == "optimizer", "the focus stays"
    page.button("Pause").click()


def test_a_number_is_turned_by_keys_and_by_the_wheel(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'bowl', Recipe(lr=0.2)"))
    page.control("lr").focus()
    page.page.keyboard.press("ArrowUp")
    page.page.wait_for_timeout(300)
    more = page.ask("lab.runner.recipe.lr")
    assert 0.2 < more < 0.25
    page.control("lr").hover()
    page.page.mouse.wheel(0, 100)
    page.page.wait_for_timeout(300)
    assert page.ask("lab.runner.recipe.lr") < more
    page.control("accumulate").focus()
    page.page.keyboard.press("ArrowUp")
    page.page.wait_for_timeout(300)
    assert page.ask("lab.runner.recipe.accumulate") == 2


@pytest.mark.parametrize("where", ["button", "canvas", "pre.gl .line", "select", "input", "textarea"])
def test_shortcuts_of_the_notebook_do_not_fire_inside(lab_page: Callable[..., Notebook], where: str) -> None:
    page = lab_page(LAB.format("'bowl'"))
    before = page.page.evaluate(CELLS)
    if where == "textarea":
        page.button("Edit the loop").click()
    page.root.locator(where).first.focus()
    for key in ("b", "d", "d", "a", "x", "m", "y", "b"):
        page.page.keyboard.press(key)
    page.page.wait_for_timeout(200)
    assert page.page.evaluate(CELLS) == before
    if where == "textarea":
        page.button("Cancel").click()


def test_what_is_copied_makes_the_same_lab(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'line'"))
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.button("Play").click()
    page.wait_for_updates(10)
    page.button("Copy this state").click()  # while it plays
    page.wait_for_words("Copied: ")
    page.button("Play").wait_for()
    line = page.page.evaluate("() => navigator.clipboard.readText()")
    assert line == f"Lab('line', Recipe(lr=0.01)).run({page.ask('lab.runner.updates')})"
    weights: Any = page.ask(WEIGHTS)
    assert page.ask(WEIGHTS.replace("lab", f"({line})", 1)) == weights
