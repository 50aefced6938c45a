"""The Lab fits the screen, nothing covers anything, and all of it can be reached without a mouse."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest

from .driving import Notebook

LAB = "from gradlab import Lab, Recipe\nlab = Lab({})\nlab.run(3)"
WRONG = "Recipe(zero_grad=False, amp='fp16', accumulate=2, clip=1.0, lr=0.01)"
CONTROLS = "select, input, button, textarea, canvas, pre .line"
LABELS = ("task", "zero_grad", "set_to_none", "accumulate", "divide_loss", "AMP", "clip", "optimizer", "lr", "speed")
BOXES = """() => {
  const seen = element => element.getClientRects().length > 0;
  const boxes = {};
  const parts = '.gl-controls > *, .gl-player > *, .gl-bar > .gl-button, .gl-buttons > *, pre.gl, canvas, '
    + '.gl-alarm, .gl-words';
  for (const one of document.querySelectorAll(`.gradlab :is(${parts})`)) {
    if (!seen(one)) continue;
    const {left, top, right, bottom} = one.getBoundingClientRect();
    const name = Object.keys(boxes).length + ' ' + one.tagName + ' ' + one.innerText.slice(0, 20);
    boxes[name] = [left, top, right, bottom];
  }
  return boxes;
}"""
PANELS = """lab => [...lab.querySelectorAll('.gl-panel')].map(panel => {
  const {left, right, top, bottom} = panel.getBoundingClientRect();
  return [left, right, top, bottom];
})"""
PAPER = """lab => [...lab.querySelectorAll('canvas')].map(canvas =>
  canvas.getContext('2d').getImageData(2, canvas.height - 3, 1, 1).data[1])"""
VIEWPORT = """() => {
  const {left, top, right, bottom} = document.querySelector('.gradlab').closest('.jp-WindowedPanel-outer')
    .getBoundingClientRect();
  return [left, top, right, bottom];
}"""


def boxes(page: Notebook) -> dict[str, list[float]]:
    """Return the box (left, top, right, bottom) of everything that is to be seen of the Lab, with a name for each."""
    found: dict[str, list[float]] = page.page.evaluate(BOXES)
    return found


def check_apart(seen: dict[str, list[float]]) -> None:
    """No part covers another."""
    for (one, a), (other, b) in combinations(seen.items(), 2):
        across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        assert across <= 1 or down <= 1, f"{one} and {other} overlap by {across:.0f} x {down:.0f} px"


@pytest.mark.parametrize(
    ("task", "recipe"), [("bowl", "Recipe(lr=0.01)"), ("digits", WRONG)], ids=["plain", "everything on"]
)
def test_fits_a_small_laptop(lab_page: Callable[..., Notebook], task: str, recipe: str) -> None:
    page = lab_page(LAB.format(f"'{task}', {recipe}"))  # 1366 x 768, with JupyterLab's side bar open
    page.side_bar(True)
    page.page.wait_for_timeout(300)  # until the side bar has moved
    if recipe == WRONG:
        assert page.page.locator(".gl-chip").is_visible()
    seen = boxes(page)
    _, top, right, bottom = page.page.evaluate(VIEWPORT)
    for name, (_, its_top, its_right, its_bottom) in seen.items():
        assert its_top >= top - 1, name
        assert its_right <= right, name
        assert its_bottom <= bottom, f"{name} ends {its_bottom - bottom:.0f} px below the window"


@pytest.mark.parametrize("width", [390, 1366])
def test_nothing_covers_anything(lab_page: Callable[..., Notebook], width: int) -> None:
    page = lab_page(LAB.format(f"'digits', {WRONG}"), width=width, height=844)
    page.side_bar(width >= 1366)
    page.page.wait_for_timeout(300)  # until the side bar has moved
    seen = boxes(page)
    assert len(seen) >= len(LABELS) + 5 + 1 + 4 + 1
    check_apart(seen)
    wide, room, page_width = page.page.evaluate(
        "() => { const lab = document.querySelector('.gradlab');"
        " return [lab.scrollWidth, lab.clientWidth, document.documentElement.scrollWidth]; }"
    )
    assert wide <= room
    assert page_width <= width
    _, _, right, _ = page.page.evaluate(VIEWPORT)
    assert max(box[2] for box in seen.values()) <= right
    assert min(box[2] - box[0] for name, box in seen.items() if "CANVAS" in name) >= 240, "pictures too small to read"
    lines = "[...document.querySelectorAll('.gradlab pre.gl .line')]"
    cut = page.page.evaluate(f"() => {lines}.filter(line => line.scrollWidth > line.clientWidth).length")
    assert cut == 0, "lines of the loop are cut off"


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_text_can_be_read_in_both_themes(lab_page: Callable[..., Notebook], theme: str) -> None:
    page = lab_page(LAB.format(f"'bowl', {WRONG}"))
    page.theme(theme)
    try:
        page.wait_for("(lab, dark) => lab.classList.contains('gradlab-dark') === dark", theme == "Dark")
        for what in (".gl-words", ".gl-note", "pre.gl .line", "pre.gl .gutter", ".gl-label"):
            assert contrast(page, f".gradlab {what}") >= 4.5, what
        assert all((paper > 128) == (theme == "Light") for paper in page.evaluate(PAPER)), "of the panels"
    finally:
        page.theme("Light")


def contrast(page: Notebook, selector: str) -> float:
    """Return the contrast of a text with the lab's paper, as WCAG 2 defines it."""
    colours = page.page.evaluate(
        "selector => { const css = (e, what) => getComputedStyle(e)[what].match(/[0-9.]+/g).map(Number);"
        " return [css(document.querySelector(selector), 'color'), css(document.querySelector('.gradlab'),"
        " 'backgroundColor')]; }",
        selector,
    )
    light, dark = sorted((luminance(colour[:3]) for colour in colours), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: list[float]) -> float:
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_tab_reaches_every_control(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits', Recipe(accumulate=2)"))
    number = "() => {{ const all = [...document.querySelectorAll('.gradlab :is({0})')]; {1} }}"
    there = page.page.evaluate(
        number.format(
            CONTROLS,
            "return all.flatMap((e, i) => e.getClientRects().length && !e.disabled && e.tabIndex >= 0 ? [i] : [])",
        )
    )
    assert len(there) == len(LABELS) + 1 + 7 + 1 + 4, (
        "controls, the curve's tick, buttons, one line of the loop, panels"
    )
    page.control("task").focus()
    reached = []
    for _ in there:
        reached.append(page.page.evaluate(number.format(CONTROLS, "return all.indexOf(document.activeElement)")))
        page.page.keyboard.press("Tab")
    assert reached == there


def test_every_control_has_a_name(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits', Recipe(accumulate=2)"))
    for words in ("Play", "1 statement", "1 update", "Reset", "Edit the loop"):
        assert page.button(words).count() == 1, words
    page.button("Edit the loop").click()
    page.button("Cancel").wait_for()
    names = page.page.locator(".gradlab").aria_snapshot().splitlines()
    for role in ("combobox", "checkbox", "spinbutton", "textbox", "button"):
        nameless = [line for line in names if line.strip().startswith(f"- {role}") and f'- {role} "' not in line]
        assert nameless == []
    labelled = [name for name in LABELS if any(f' "{name}"' in line for line in names)]
    assert labelled == list(LABELS)
    assert any('textbox "your own loop"' in line for line in names)
    page.button("Cancel").click()


THREE = "from gradlab import Lab\nlab = Lab('digits', panels=['loss', 'gradient', 'memory'])\nlab.run(3)"
RING = "from gradlab import course\ncourse.ring_of_orders()"
FULL = "from gradlab import Lab\nlab = Lab('digits')\nlab.run(3)"


@pytest.mark.parametrize("cell", [THREE, RING, FULL], ids=["three", "ring", "full"])
def test_panels_leave_no_hole_and_none_is_a_thumbnail(lab_page: Callable[..., Notebook], cell: str) -> None:
    page = lab_page(cell, height=844)
    for width in (1366, 390, 1024, 1920):
        page.page.set_viewport_size({"width": width, "height": 844})
        page.side_bar(width in (1024, 1366))  # as JupyterLab begins
        page.page.wait_for_timeout(700)
        boxes = page.evaluate(PANELS)
        left, right = min(box[0] for box in boxes), max(box[1] for box in boxes)
        for top in {round(box[2]) for box in boxes}:
            row = [box for box in boxes if round(box[2]) == top]
            assert sum(box[1] - box[0] for box in row) >= right - left - 8 * len(row), f"each row is full at {width}"
        assert min(box[1] - box[0] for box in boxes) >= (255 if width == 390 else 275), width
        page.side_bar(False)
