"""The peak in a browser: every control by mouse, keys and finger; live, and on a page without a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from gradlab.course import peak

from .driving import Notebook
from .test_layout import boxes, contrast

CELL = "from gradlab.course import peak\nlab = peak()\nlab"
SLIDERS = {"width": (64, 128), "depth": (6, 8), "batch": (128, 256), "accumulate": (1, 2)}
CHOICES = {"optimizer": ("adam", "sgd"), "place": ("before forward", "after step"), "amp": ("off", "bf16")}
TICKS = {"set_to_none": (True, False), "checkpoint": (False, True)}
TIMES = """async (lab) => {
  const range = lab.querySelector('[name=batch]'), state = lab.querySelector('.gl-state'), took = [];
  for (const at of [6, 5, 4, 3, 2, 1, 0]) {
    const changed = new Promise(done => new MutationObserver((_, watch) => {
      watch.disconnect();
      done(performance.now());
    }).observe(state, {childList: true, characterData: true, subtree: true}));
    const began = performance.now();
    range.value = String(at);
    range.dispatchEvent(new Event('input', {bubbles: true}));
    took.push(await changed - began);
  }
  return took;
}"""


def value(page: Notebook, name: str) -> Any:
    page.wait_until_still()
    return page.ask(f"lab.values[{name!r}]")


def test_every_control_by_mouse(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    assert "Peak 592 KiB in backward(), in module 11 (ReLU)" in page.words()
    for name, (start, other) in SLIDERS.items():
        box = page.control(name).bounding_box()
        assert value(page, name) == start
        count = int(page.control(name).get_attribute("max"))
        at = int(page.control(name).input_value()) + 1
        page.page.mouse.click(box["x"] + 8 + (box["width"] - 16) * at / count, box["y"] + box["height"] / 2)
        assert value(page, name) == other
    for name, (start, other) in TICKS.items():
        assert value(page, name) is start
        page.control(name).click()
        assert value(page, name) is other
    for name, (start, other) in CHOICES.items():
        assert value(page, name) == start
        page.control(name).select_option(label=other)
        assert value(page, name) == other
    page.wait_for_words("Against the start .* Each switch by itself")
    for word in ("width 64 → 128", "accumulate 1 → 2", "set_to_none on → off", "AMP off → bf16", "→ after step"):
        assert word in str(page.panel("effects").get_attribute("aria-label"))
    assert re.search(r"; \d+ more in the bars\.", page.words())


def test_every_control_by_keys(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    keys = page.page.keyboard
    for name, (_, other) in SLIDERS.items():
        page.control(name).focus()
        keys.press("ArrowRight")
        assert value(page, name) == other
        keys.press("ArrowLeft")
    for name, (_, other) in TICKS.items():
        page.control(name).focus()
        keys.press("Space")
        assert value(page, name) is other
        keys.press("Space")
    for name, word in (("optimizer", "momentum"), ("place", "before backward"), ("amp", "bf16")):
        page.control(name).focus()
        keys.press("ArrowUp" if name == "optimizer" else "ArrowDown")
        assert value(page, name) == word
    assert page.lines("lit")
    lit = page.code().splitlines()[page.lines("lit")[0] - 1]
    where = re.search(r"Peak [\d.]+ \w+ in (\w+)", page.words())
    assert where
    assert {"forward": "autocast", "backward": "backward()", "step": "step()"}[where[1]] in lit


def test_every_control_by_finger_on_a_page_without_a_kernel(notebook: Notebook, tmp_path: Path) -> None:
    address = peak().save(tmp_path / "peak.html").as_uri()
    page: Any = notebook.page.context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(error.stack))
    try:
        page.set_viewport_size({"width": 390, "height": 800})
        touch = page.context.new_cdp_session(page)
        touch.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
        page.route(re.compile("^http"), lambda route: route.abort())
        page.goto(address)
        state = page.locator(".gl-state")
        state.filter(has_text="Peak 592 KiB").wait_for()

        def tap(name: str, share: float = 0.5) -> None:
            control = page.locator(f"[name={name}]")
            control.scroll_into_view_if_needed()
            box = control.bounding_box()
            at = {"x": box["x"] + 8 + (box["width"] - 16) * share, "y": box["y"] + box["height"] / 2}
            touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [at]})
            touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

        for name, (start, other) in SLIDERS.items():
            tap(name, share=int(page.locator(f"[name={name}]").get_attribute("max")) and 1.0)
            state.filter(has_text=f"{name} {start} → ").wait_for()
            at = [start, other].index(start)
            page.locator(f"[name={name}]").focus()
            for _ in range(12):
                if page.locator(f"[name={name}]").get_attribute("aria-valuetext") == str([start, other][at]):
                    break
                page.keyboard.press("ArrowLeft")
            state.filter(has_text="Peak 592 KiB").wait_for()
        for name, (start, _) in TICKS.items():
            tap(name)
            words = {"checkpoint": "checkpointing"}.get(name, name)
            state.filter(has_text=f"{words} {'on' if start else 'off'} → ").wait_for()
            tap(name)
            state.filter(has_text="Peak 592 KiB").wait_for()
        for name, (start, other) in CHOICES.items():
            page.locator(f"[name={name}]").select_option(label=other)
            state.filter(has_text=f"→ {other}").wait_for()
            page.locator(f"[name={name}]").select_option(label=start)
        assert errors == []
    finally:
        page.close()


def test_a_hand_is_answered(lab_page: Callable[..., Notebook]) -> None:
    """Each of seven new settings, which are all measured anew, is answered; how fast is printed and not judged."""
    page = lab_page(CELL)
    took = [float(each) for each in page.evaluate(f"lab => ({TIMES})(lab)")]
    print("ms from the hand to the words:", [round(each) for each in took])
    assert len(took) == 7


@pytest.mark.parametrize(("width", "theme"), [(1366, "Dark"), (900, "Light"), (400, "Light")])
def test_it_fits_and_can_be_read(lab_page: Callable[..., Notebook], width: int, theme: str) -> None:
    page = lab_page(
        f"{CELL}\nlab.turn('optimizer', 'sgd')\nlab.turn('place', 'before backward')\nlab", width=width, height=900
    )
    page.theme(theme)
    page.side_bar(False)
    try:
        page.page.wait_for_timeout(300)
        for what in (".gl-state", ".gl-label", ".gl-value"):
            assert contrast(page, f".gradlab {what}") >= 4.5, what
        wide = page.evaluate("lab => [lab.scrollWidth, lab.clientWidth]")
        assert wide[0] <= wide[1]
        for (one, a), (other, b) in combinations(boxes(page).items(), 2):
            across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
            assert across <= 1 or down <= 1, f"{one} and {other} overlap"
    finally:
        page.theme("Light")
        page.side_bar(True)
