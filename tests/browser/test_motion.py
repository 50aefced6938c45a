"""Motion at statements, highlighted words and marks, and play on opening."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from .driving import Notebook

LAB = "from gradlab import Lab, Recipe\nlab = Lab({})\nlab"
WORDS = {
    "cell_type": "markdown",
    "source": 'Yellow is <span class="gradlab-word-applied">**applied once**</span>, striped is '
    '<span class="gradlab-word-reused">reused</span>; <span class="gradlab-word-zero_grad">`zero_grad()`</span>.',
}
# Records the lit line whenever a motion begins in the gradient panel.
WATCH = """lab => {
  window.moved = [];
  new MutationObserver((changes) => {
    if (changes[0].target.hasAttribute('data-moving')) {
      requestAnimationFrame(() => moved.push(lab.querySelector('pre.gl .lit .text').textContent.trim()));
    }
  }).observe(lab.querySelector('[data-panel=gradient]'), {attributeFilter: ['data-moving']});
}"""
# The centre, in CSS pixels of the screen, and the count of a panel's pixels of a colour below a share of its height.
MIDDLE = """(lab, [name, colour, top]) => {
  const canvas = lab.querySelector(`[data-panel=${name}] canvas`), box = canvas.getBoundingClientRect();
  const {data, width, height} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let [x, y, count] = [0, 0, 0];
  for (let at = 4 * width * Math.ceil(height * top); at < data.length; at += 4) {
    if (colour.some((part, channel) => data[at + channel] !== part)) continue;
    x += (at / 4) % width;
    y += Math.floor(at / 4 / width);
    count += 1;
  }
  return [box.x + x / count * box.width / canvas.width, box.y + y / count * box.height / canvas.height, count];
}"""
BLUE, YELLOW = [0x00, 0x72, 0xB2], [0xF0, 0xE4, 0x42]  # of weights and of gradients applied once


@pytest.fixture
def moving(lab_page: Callable[..., Notebook], notebook: Notebook) -> Iterator[Callable[..., Notebook]]:
    """As ``lab_page``, with motion."""
    notebook.page.emulate_media(reduced_motion="no-preference")
    yield lab_page
    notebook.page.emulate_media(reduced_motion="reduce")


def test_three_calls_move_the_arrows_and_nothing_else_does(moving: Callable[..., Notebook]) -> None:
    """Statement by statement, also when statements are played, but not at 60 updates/s."""
    page = moving(f"{LAB.format(repr('bowl'))}.run(1)")
    page.evaluate(WATCH)
    for _ in range(8):
        lit = page.lines("lit")
        page.button("1 statement").click()
        page.wait_for("(lab, lit) => !lab.querySelectorAll('pre.gl .line')[lit - 1].classList.contains('lit')", lit[0])
        page.wait_until_still()
    moved = page.page.evaluate("() => moved.splice(0)")
    assert moved == ["optimizer.zero_grad()", "loss.backward()", "optimizer.step()"]
    page.turn("speed", "statements")
    page.button("Play").click()
    page.wait_for("lab => ['loss.backward()', 'optimizer.step()'].every(call => moved.includes(call))")
    page.button("Pause").click()
    page.wait_until_still()
    page.page.evaluate("() => moved.splice(0)")
    page.turn("speed", "60 updates/s")
    page.button("Play").click()
    page.wait_for_updates(30)
    assert page.page.evaluate("() => moved.splice(0)") == []
    page.button("Pause").click()
    page.wait_until_still()


def test_marked_words_and_marks_light_each_other(lab_page: Callable[..., Notebook]) -> None:
    """In a notebook's Markdown: JupyterLab's sanitizer must keep the classes of the words."""
    page = lab_page(f"{LAB.format(repr('digits'))}.run(5)", WORDS, height=1000)
    page.wait_until_still()
    plain = page.pictures()
    word = page.page.locator(".gradlab-word-applied")
    expect(word).to_have_text("applied once")
    word.hover()
    lit = page.pictures()
    assert all(old != new for old, new in zip(plain, lit, strict=True)), "all else is dim"
    *_, many = page.evaluate(MIDDLE, ["gradient", YELLOW, 0.25])
    assert many > 50, "what is applied once is as yellow as before"
    page.page.mouse.move(0, 0)
    expect(page.page.locator(".gradlab-lit")).to_have_count(0)
    assert page.pictures() == plain
    word.focus()
    assert page.pictures() == lit
    page.button("Play").focus()
    x, y, _ = page.evaluate(MIDDLE, ["gradient", YELLOW, 0.25])
    page.page.mouse.move(*page.position("gradient", 0.5, 0.5))
    page.page.mouse.move(x, y)
    expect(page.page.locator(".gradlab-lit")).to_have_count(1)
    expect(page.page.locator(".gradlab-lit")).to_have_text("applied once")
    page.page.mouse.move(0, 0)
    expect(page.page.locator(".gradlab-lit")).to_have_count(0)
    page.root.locator("pre.gl .line", has_text="loss.backward()").hover()
    script = (
        "(lab, plain) => [...lab.querySelectorAll('canvas')].some((each, index) => each.toDataURL() !== plain[index])"
    )
    page.wait_for(script, plain)


def test_a_lab_plays_on_its_own_once(moving: Callable[..., Notebook]) -> None:
    page = moving(LAB.format("'line', speed='10 updates/s', play=True"))
    page.wait_for_updates(2)
    page.button("Pause").click()
    page.wait_until_still()
    updates = page.updates()
    page.show("lab")
    page.wait_until_still()
    assert (page.plays(), page.updates()) == (False, updates)


def test_a_lab_waits_where_less_motion_is_wanted(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'line', speed='10 updates/s', play=True"))
    page.wait_until_still()
    assert (page.plays(), page.updates()) == (False, 0)
