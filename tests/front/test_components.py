"""The parts of the front end in a real Chromium, each by itself: no kernel, no notebook."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from browser.driving import chromium, next_frames
from playwright.sync_api import sync_playwright

from gradlab.front import joined_module, style_sheet

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        chromium() is None and not os.environ.get("GRADLAB_REQUIRE_BROWSER"),
        reason="needs Chromium (Debian: apt-get install chromium)",
    ),
]
PAGE = """<!doctype html><meta charset="utf-8"><title>parts</title><style>STYLE</style>
<body style="margin:0"><div id="host" style="width:400px"></div>
<script type="module">PARTS
Object.assign(window, { NAMES });
window.root = addElement("div", document.querySelector("#host"), "gradlab");
root.style.padding = 0;
Object.assign(window, { asked: [], said: [], ask: (request) => { asked.push(request); } });
window.wait = (ms) => new Promise((done) => setTimeout(done, ms));
window.ready = true;
</script>"""
NAMES = "addElement addButton applyPanel boxOf CodePane colourOf contrastBetween ControlBar applyTheme followTheme"
NAMES += " keepKeys mergeFrame nothingShown Panel PanelStrip RunScreen themeOf Words"
PANEL = {
    "title": "loss",
    "words": "It falls.",
    "axes": [
        {"x": {"low": 8, "high": 386, "ticks": "none"}, "y": {"low": 8, "high": 170, "ticks": "none"}, "zooms": True}
    ],
    "ids": ["area", "empty", "curve", "now"],
    "marks": [
        {
            "k": "a",
            "p": [300, 160, 320, 160, 320, 140, 300, 140],
            "fill": "weights",
            "words": "batch 3",
            "press": "batch 3",
        },
        {"k": "l", "p": [None, None], "stroke": "scale", "words": "nothing of it is there yet"},
        {"k": "l", "p": [40, 40, 80, 50, 120, 60, 160, 70], "stroke": "loss", "readout": "update {x}: loss {y}"},
        {"k": "d", "p": [200, 40], "size": 10, "fill": "fresh", "drag": "weights"},
    ],
}
"""In 400 x 200 px the number of x is a place in px, that of y counts from the lower edge: an area to press at (310,
50), a curve from (40, 160) to (160, 130), and weights at (200, 160)."""
LOOP = "optimizer = make()\nfor x, y in batches:\n    step(x, y)\n"
CODE = {
    "code": {"source": LOOP, "html": LOOP.splitlines()},
    "lit": [2, 2],
    "changed": [3],
    "wrong": 0,
    "editable": True,
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), headless=True, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any) -> Iterator[tuple[Any, list[str]]]:
    """An empty page that knows no address but its own, and what goes wrong in it."""
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(error.stack))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    text = PAGE.replace("PARTS", joined_module("screen")).replace("STYLE", style_sheet())
    text = text.replace("NAMES", NAMES.replace(" ", ", "))
    page.route("**/*", lambda route: route.fulfill(body=text, content_type="text/html"))
    yield page, errors
    page.close()


def begun(page: Any, errors: list[str]) -> Iterator[Any]:
    """Load all parts anew, with an empty root; a test fails on any error in the page."""
    page.set_viewport_size({"width": 900, "height": 900})
    page.emulate_media(color_scheme="light", reduced_motion="reduce", contrast="no-preference")
    page.mouse.move(899, 899)
    page.goto("http://parts.test/")
    page.wait_for_function("window.ready")
    yield page
    assert [errors.pop() for _ in errors[:]] == []


@pytest.fixture(scope="module")
def shared(browser: Any) -> Iterator[Any]:
    with opened(browser) as page_and_errors:
        yield page_and_errors


@pytest.fixture
def page(shared: tuple[Any, list[str]]) -> Iterator[Any]:
    yield from begun(*shared)


def new_requests(page: Any) -> list[dict[str, Any]]:
    """The messages of the parts to the kernel since the last call."""
    next_frames(page)
    requests: list[dict[str, Any]] = page.evaluate("() => asked.splice(0)")
    return requests


# The panel ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def panel(page: Any) -> Any:
    page.evaluate(
        """state => {
          window.cleared = 0;
          const clear = CanvasRenderingContext2D.prototype.clearRect;
          CanvasRenderingContext2D.prototype.clearRect = function (...box) { cleared++; clear.apply(this, box); };
          const zoom = (...range) => asked.push(['zoom', ...range]);
          window.panel = new Panel(root, {name: 'loss', say: text => said.push(text), ask, zoom});
          window.state = state;
          window.moving = () => panel.figure.hasAttribute('data-moving');
          window.still = async () => { for (let at = 0; moving() && at < 250; at++) await wait(20); };
          window.pixels = () => panel.canvas.toDataURL();
          panel.show(state);
          panel.resize(200);
        }""",
        PANEL,
    )
    next_frames(page)
    return page


def tip(page: Any) -> str | None:
    element = page.locator(".gl-tip")
    return str(element.inner_text()) if element.is_visible() else None


def test_a_state_is_painted_once_at_the_density_of_the_screen(panel: Any) -> None:
    assert panel.evaluate("() => { cleared = 0; panel.show(state); return cleared; }") == 1
    assert panel.evaluate("() => [panel.canvas.width, panel.canvas.height]") == [400, 200]
    panel.evaluate("() => { document.querySelector('#host').style.width = '800px'; }")
    panel.wait_for_function("() => panel.canvas.width === 800 && panel.canvas.clientHeight === 200")
    assert panel.get_by_role("img", name="loss. It falls.").is_visible()


def test_marks_have_the_colours_of_the_theme(panel: Any) -> None:
    cells = {"k": "i", "p": [10, 80, 50, 100], "columns": 2, "cells": "01"}
    band = {"k": "b", "p": [8, 10, 18, 198, 10, 18], "fill": "scale/50"}
    colours = panel.evaluate(
        """(more) => {
          panel.show({...state, ids: [...state.ids, 'cells', 'band'], marks: [...state.marks, ...more]});
          const at = ([x, y]) => '#' + [...panel.picture.context.getImageData(x, y, 1, 1).data].slice(0, 3)
            .map((part) => part.toString(16).padStart(2, '0')).join('').toUpperCase();
          const places = [[5, 5], [310, 50], [200, 160], [15, 110], [40, 110], [20, 185]];
          const roles = ['paper', 'weights', 'fresh', 'reused', 'ink', 'scale/50'];
          return ['light', 'dark'].map((theme) => {
            panel.picture.setTheme(theme);
            return [places.map(at), roles.map((role) => colourOf(role, theme))];
          });
        }""",
        [{**cells, "palette": ["reused", "ink"]}, band],
    )
    assert all(painted == wanted for painted, wanted in colours)


def test_the_pointer_is_told_what_is_there(panel: Any) -> None:
    assert tip(panel) is None
    panel.mouse.move(82, 145)
    assert tip(panel) == "update 80: loss 50"
    panel.mouse.move(310, 50)
    assert tip(panel) == "batch 3"
    assert not panel.locator(".gl-cross").is_visible(), "an area has no line"
    panel.mouse.click(310, 50)
    assert new_requests(panel) == [{"do": "press", "what": "batch 3"}]
    panel.evaluate("() => panel.show(applyPanel(state, {set: [[0, {words: 'batch 4'}]]}))")
    assert tip(panel) == "batch 4", "it follows what is painted"
    panel.mouse.move(250, 100)
    assert tip(panel) == "update 160: loss 70", "the nearest point of the curve"
    panel.mouse.move(250, 10)
    assert tip(panel) is None, "at the title"
    panel.mouse.move(118, 100)
    assert tip(panel) == "update 120: loss 60"
    line = panel.locator(".gl-cross").bounding_box()
    assert (round(line["x"]), round(line["width"])) == (120, 1), "the line is at the point of the words"
    hint = panel.evaluate("() => getComputedStyle(document.querySelector('.gl-tip'), '::after').content")
    assert hint == '"drag to zoom"'


# Motion: two states, in the second of which an arrow has come.
ARROW = {"k": "v", "p": [20, 80, 140, 80], "fill": "fresh", "words": "batch 1", "moves": True}
NEXT = {**ARROW, "p": [140, 80, 260, 80], "words": "batch 2"}
MOVED = [{**PANEL, "ids": ["arrow 0", "arrow 1"][:count], "marks": [ARROW, NEXT][:count]} for count in (1, 2)]


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_an_arrow_slides_in_and_readers_have_it_at_once(panel: Any, motion: str) -> None:
    panel.emulate_media(reduced_motion=motion)
    script = """async ([from, to]) => {
      panel.show(to);
      panel.picture.finish();
      const end = pixels();
      panel.show(from);
      panel.picture.finish();
      await wait(400);
      panel.show(to);
      panel.describe();
      const said = document.querySelector('.gl-panel').innerText;
      const found = [moving(), pixels() === end, said.includes('batch 2')];
      await still();
      return [...found, pixels() === end];
    }"""
    slides = motion == "no-preference"
    assert panel.evaluate(script, MOVED) == [slides, not slides, True, True]


# Light: marked words around two labs, each with a panel.


@pytest.fixture
def marked_words(page: Any) -> Any:
    page.evaluate(
        """state => {
          const word = (name) => `<p><span class="gradlab-word-${name}">${name}</span></p>`;
          document.body.insertAdjacentHTML('afterbegin', word('reused'));
          document.querySelector('#host').insertAdjacentHTML('afterend', word('weights') +
            '<div style="height: 300px"></div><div class="gradlab" id="other"></div>' + word('applied'));
          const labs = [root, document.querySelector('#other')];
          const strips = labs.map((lab) => {
            const strip = new PanelStrip(addElement('div', lab), {ask, say: () => {}});
            strip.show({order: ['loss'], panels: {loss: state}}, new Set(['order']));
            return strip;
          });
          window.lit = () => strips.map((strip) => [...strip.panels.get('loss').picture._lit ?? []]);
          window.pixels = () => strips.map((strip) => strip.panels.get('loss').canvas.toDataURL());
        }""",
        PANEL,
    )
    next_frames(page)
    return page


def test_a_marked_word_lights_the_marks_of_the_nearest_lab(marked_words: Any) -> None:
    plain = marked_words.evaluate("pixels")
    marked_words.locator(".gradlab-word-weights").dispatch_event("pointerover")
    assert marked_words.evaluate("lit") == [[], []], "the page has scrolled under a pointer at rest"
    marked_words.locator(".gradlab-word-weights").hover()
    assert marked_words.evaluate("lit") == [["weights"], []]
    assert [old != new for old, new in zip(plain, marked_words.evaluate("pixels"), strict=True)] == [True, False]
    marked_words.locator(".gradlab-word-applied").hover()
    assert marked_words.evaluate("lit") == [[], ["applied"]]
    marked_words.locator(".gradlab-word-reused").hover()
    assert marked_words.evaluate("lit") == [[], []], "no mark is reused: nothing is dim"
    marked_words.mouse.move(899, 899)
    assert marked_words.evaluate("pixels") == plain
    for _ in range(3):
        marked_words.keyboard.press("Tab")
    assert marked_words.evaluate("() => document.activeElement.textContent") == "weights"
    assert marked_words.evaluate("lit") == [["weights"], []], "by keys, too"
    marked_words.keyboard.press("Tab")
    assert marked_words.evaluate("lit") == [[], []]


def test_keys_go_from_mark_to_mark_and_along_a_curve(panel: Any) -> None:
    panel.keyboard.press("Tab")
    for key, text in [
        ("ArrowRight", "batch 3"),
        ("ArrowDown", "update 160: loss 70"),
        ("ArrowLeft", "update 120: loss 60"),
        ("Home", "update 40: loss 40"),
        ("PageUp", "update 160: loss 70"),
        ("PageDown", "update 40: loss 40"),
        ("ArrowUp", "batch 3"),
    ]:
        panel.keyboard.press(key)
        assert tip(panel) == text, key
        assert panel.evaluate("() => said.splice(0)") == [text], key
    panel.keyboard.press("Enter")
    assert new_requests(panel) == [{"do": "press", "what": "batch 3"}]
    panel.keyboard.press("Escape")
    assert tip(panel) is None
    items = panel.evaluate("() => [...document.querySelectorAll('.gl-panel li')].map((item) => item.textContent)")
    assert items == ["It falls.", "batch 3", "nothing of it is there yet", "update 160: loss 70"]


def test_keys_move_the_weights_and_choose_a_range(panel: Any) -> None:
    panel.keyboard.press("Tab")
    for key in ("+", "-", "0", "Shift+ArrowRight"):
        panel.keyboard.press(key)
    drag = {"do": "drag", "name": "weights", "x": 208, "y": 40}
    assert new_requests(panel) == [["zoom", 197, 386], ["zoom", -370, 386], ["zoom"], drag]


def test_weights_are_dragged_and_the_last_place_is_told(panel: Any) -> None:
    panel.mouse.move(200, 160)
    panel.mouse.down()
    panel.mouse.move(260, 100, steps=40)
    panel.mouse.move(300, 150)
    panel.mouse.up()
    drags = new_requests(panel)
    assert drags[-1] == {"do": "drag", "name": "weights", "x": 300, "y": 50}
    assert {request["do"] for request in drags} == {"drag"}


def test_what_is_dragged_stays_on_its_axes_until_it_is_dropped(panel: Any) -> None:
    panel.evaluate("() => { window.wide = () => panel._panel.plots[0].x.axis.high; }")
    panel.mouse.move(200, 160)
    panel.mouse.down()
    panel.mouse.move(260, 100)
    panel.evaluate("""() => panel.show({...state, axes: [{...state.axes[0], x: {...state.axes[0].x, high: 800}}]})""")
    assert panel.evaluate("wide") == 386
    panel.mouse.up()
    assert panel.evaluate("wide") == 800


def test_a_range_is_chosen_and_left_again(panel: Any) -> None:
    panel.mouse.move(250, 100)
    panel.mouse.down()
    panel.mouse.move(150, 90, steps=5)
    assert tip(panel) is None
    box = panel.locator(".gl-range").bounding_box()
    assert [round(box[side]) for side in ("x", "width", "y", "height")] == [150, 100, 30, 162]
    panel.mouse.up()
    assert new_requests(panel) == [["zoom", 150, 250]]
    assert not panel.locator(".gl-range").is_visible()
    panel.mouse.dblclick(250, 100)
    assert new_requests(panel) == [["zoom"]]
    panel.evaluate("() => panel.setRange([70, 130])")
    panel.mouse.move(380, 100)
    assert tip(panel) == "update 120: loss 60", "the last point within the range"
    panel.get_by_role("button", name="Show all").click()
    assert new_requests(panel) == [["zoom"]]


@pytest.fixture
def strip(page: Any) -> Any:
    page.evaluate(
        """state => {
          window.strip = new PanelStrip(addElement('div', root), {ask, say: (text) => said.push(text)});
          window.play = (high) => {
            const axes = [{...state.axes[0], x: {low: 0, high, ticks: 'updates'}}];
            const panels = {loss: {...state, axes}, other: {...state, axes: [{...axes[0], zooms: false}]}};
            strip.show({order: ['loss', 'other'], panels}, new Set(['order']));
          };
          window.seen = () => [...strip.panels.values()].map((panel) => {
            const {low, high} = panel._panel.plots[0].x.axis;
            return [low, high];
          });
          play(1000);
        }""",
        PANEL,
    )
    next_frames(page)
    return page


def test_a_range_stays_until_the_run_begins_again(strip: Any) -> None:
    strip.evaluate("() => strip.zoom(400, 430)")
    assert strip.evaluate("seen") == [[400, 430], [0, 1000]]
    assert strip.evaluate("() => said.splice(0)") == ["Updates 400 to 430 are shown; a double click shows all."]
    strip.evaluate("() => play(1500)")
    assert strip.evaluate("seen") == [[400, 430], [0, 1500]]
    strip.evaluate("() => strip.zoom(-20, 0.5)")
    assert strip.evaluate("seen")[0] == [0, 20.5], "a range begins at 0"
    strip.evaluate("() => strip.zoom(1499.5, 1500)")
    assert strip.evaluate("seen")[0] == [1498, 1500], "two updates are the least, and the last one the end"
    strip.evaluate("() => play(10)")
    assert strip.evaluate("seen") == [[0, 10], [0, 10]]
    strip.evaluate("() => { strip.zoom(2, 4); strip.zoom(-5, 50); }")
    assert strip.evaluate("seen")[0] == [0, 10]
    assert strip.evaluate("() => said.at(-1)") == "All updates are shown."


def test_a_panel_that_comes_later_shows_the_chosen_range(strip: Any) -> None:
    strip.evaluate("""() => {
      strip.zoom(400, 430);
      const {data} = strip.panels.get('loss');
      strip.show({order: ['loss', 'other', 'later'], panels: {later: data}}, new Set(['order']));
    }""")
    assert strip.evaluate("seen")[2] == [400, 430]


def test_panels_are_laid_out_anew_for_another_width_and_font(strip: Any) -> None:
    strip.evaluate("""() => {
      window.ticks = () => strip.panels.get('loss')._panel.ids.filter((id) => /^axes x\\d/.test(id)).length;
      window.before = ticks();
      document.querySelector('#host').style.width = '800px';
    }""")
    strip.wait_for_function("() => ticks() > before")
    end = strip.evaluate("""() => {
      const end = () => boxOf(strip.panels.get('loss')._panel.marks[0])[2];
      const was = end();
      const measured = CanvasRenderingContext2D.prototype.measureText;
      const twice = function (text) { return {width: 2 * measured.call(this, text).width}; };
      CanvasRenderingContext2D.prototype.measureText = twice;
      document.fonts.dispatchEvent(new Event('loadingdone'));
      return (end() - 8) / (was - 8);
    }""")
    assert round(end, 2) == 2, "texts are measured anew"


# The slider ---------------------------------------------------------------------------------------------------------


def test_a_slider_over_all_numbers(page: Any) -> None:
    lr = {"kind": "slider", "name": "lr", "label": "lr", "low": 0.01, "high": 4.5, "step": 0.01}
    page.evaluate(
        "lr => new ControlBar(root, {ask}).show({controls: [lr], values: {lr: 0.123}, off: []})",
        lr,
    )
    value = page.locator(".gl-value")
    assert value.inner_text() == "0.123", "a value between two steps is written as it is"
    field = page.locator("[name=lr]")
    field.fill("0.57")
    field.press("ArrowRight")
    assert turned(page) == [("lr", 0.57), ("lr", 0.58)]
    assert (value.inner_text(), field.get_attribute("aria-valuetext")) == ("0.58", "0.58")
    assert page.locator("output, [aria-live]").count() == 0, "the range itself says its value"


# The loop -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def code(page: Any) -> Any:
    page.evaluate(
        """state => {
          window.pane = new CodePane(root, {ask, onPlay: () => asked.push({do: 'play'})});
          pane.show({...state, draft: ''});
        }""",
        CODE,
    )
    return page


def show_code(page: Any, **change: Any) -> None:
    page.evaluate("change => pane.show(change)", change)


def press(page: Any, text: str) -> None:
    page.get_by_role("button", name=text).click()


def write(page: Any, text: str) -> Any:
    """Open the field if it is closed, and write a loop of one's own in it."""
    field = page.get_by_label("your own loop")
    if not field.is_visible():
        press(page, "Edit the loop")
    field.fill(text)
    return field


def test_lines_carry_their_marks(code: Any) -> None:
    lines = code.locator("pre.gl .line")
    assert [text.split(" ")[0] for text in lines.locator(".gutter").all_inner_texts()] == ["", "▶", ""]
    assert lines.nth(1).get_attribute("aria-current") == "step"
    show_code(code, wrong=1, lit=[3, 3], changed=[])
    assert [text.strip() for text in lines.locator(".gutter").all_inner_texts()] == ["✗ 1", "2", "▶ 3"]


def test_a_line_lights_what_it_touches(code: Any) -> None:
    code.evaluate(
        """state => {
      window.lights = [];
      root.replaceChildren();
      window.pane = new CodePane(root, {ask, onPlay: () => {}, light: (tags) => lights.push(tags && [...tags])});
      const lines = ['model.train()', 'loss.backward()'];
      pane.show({...state, code: {source: lines.join('\\n'), html: lines}, draft: ''});
    }""",
        CODE,
    )
    lines = code.locator("pre.gl .line")
    lines.nth(1).dispatch_event("pointerover")
    assert code.evaluate("() => lights") == [], "the page has scrolled under a pointer at rest"
    lines.nth(1).hover()
    assert code.evaluate("() => lights.at(-1)") is None, "the pointer only passes"
    code.wait_for_function("() => lights.at(-1)?.join() === 'fresh,gradients'")
    lines.nth(0).hover()
    assert code.evaluate("() => lights.at(-1)") is None
    code.keyboard.press("Tab")
    code.keyboard.press("ArrowDown")
    code.wait_for_function("() => lights.at(-1)?.join() === 'fresh,gradients'")
    code.mouse.move(899, 899)
    code.evaluate("() => document.activeElement.blur()")
    assert code.evaluate("() => lights.at(-1)") is None


def test_no_line_lights_while_it_plays(code: Any) -> None:
    code.evaluate("""() => {
      root.replaceChildren();
      window.lights = [];
      window.pane = new CodePane(root, {ask, onPlay: () => {}, light: (tags) => lights.push(tags)});
      pane.playing = true;
      pane.show({code: {source: 'loss.backward()', html: ['loss.backward()']}});
    }""")
    code.locator("pre.gl .line").first.hover()
    code.evaluate("() => wait(500)")  # its timer is due after that of the light
    assert code.evaluate("() => lights.filter(Boolean)") == []


def test_the_line_is_a_switch(code: Any) -> None:
    """It is pressed by pointer or key, struck through at once, and another line is run to as before."""
    html = ["loss.backward()", "    optimizer.zero_grad()"]
    show_code(
        code, code={"source": "\n".join(html), "html": html, "turns": [2], "hint": True}, values={"zero_grad": True}
    )
    line, hint = code.locator("pre.gl .turns"), code.locator(".gl-hint")
    assert (line.count(), line.get_attribute("aria-pressed")) == (1, "true")
    assert hint.inner_text() == "Press the line optimizer.zero_grad() to take it out."
    line.click()
    assert code.evaluate("() => asked") == [{"do": "turn", "name": "zero_grad", "value": False}]
    assert line.get_attribute("aria-pressed") == "false"
    assert "pending" in str(line.get_attribute("class"))
    html[1] = '    <span class="gl-hidden"># </span><s>optimizer.zero_grad()</s>'
    code_now = {"source": "loss.backward()\n    # optimizer.zero_grad()", "html": html, "turns": [2], "hint": True}
    show_code(code, code=code_now, values={"zero_grad": False})
    assert "pending" not in str(line.get_attribute("class"))
    assert line.locator(".text").evaluate("each => each.textContent") == "    # optimizer.zero_grad()"
    assert hint.inner_text() == "Press the line optimizer.zero_grad() to put it back."
    line.press("Enter")
    code.locator("pre.gl .line").first.click()
    assert code.evaluate("() => asked.slice(1)") == [
        {"do": "turn", "name": "zero_grad", "value": True},
        {"do": "to_line", "line": 1},
    ]


def test_a_line_is_pressed_and_a_blank_one_is_no_button(code: Any) -> None:
    code.locator("pre.gl .line").nth(2).click()
    code.keyboard.press("ArrowUp")
    code.keyboard.press("Enter")
    assert new_requests(code) == [{"do": "to_line", "line": 3}, {"do": "to_line", "line": 2}]
    show_code(code, code={"source": "a\n\nb\n", "html": ["a", "", "b"]})
    assert code.get_by_role("button", name="a").count() == 1
    assert code.locator("pre.gl [role=button]").count() == 2
    code.locator("pre.gl .line").nth(1).click()
    code.locator("pre.gl .line").nth(0).focus()
    code.keyboard.press("ArrowDown")
    code.keyboard.press("Enter")
    assert new_requests(code) == [{"do": "to_line", "line": 3}]


def test_a_draft_survives_cancel_switches_and_a_whole_frame(code: Any) -> None:
    field = write(code, "mine = 1")
    code.evaluate("state => pane.show({...state, draft: ''})", CODE)
    assert field.input_value() == "mine = 1"
    press(code, "Cancel")
    show_code(code, code={"source": "other\n", "html": ["other"]}, draft="")
    press(code, "Edit the loop")
    assert field.input_value() == "mine = 1"
    press(code, "Start from the loop as it runs")
    assert field.input_value() == "other\n"


def test_a_loop_that_is_taken_closes_the_field_and_plays(code: Any) -> None:
    field = write(code, "mine = 1\n")
    press(code, "Run this loop")
    assert new_requests(code) == [{"do": "edit", "text": "mine = 1\n"}]
    show_code(code, lit=[1, 1])  # a frame that was on its way already
    assert field.is_visible()
    show_code(code, code={"source": "mine = 1\n", "html": ["mine = 1"]}, draft="")
    assert new_requests(code) == [{"do": "play"}], "once it is known that it can begin"
    assert not field.is_visible()
    press(code, "Edit the loop")
    assert field.input_value() == "mine = 1\n"
    field.fill("mine = 11\n")
    press(code, "Run this loop")
    field.fill("mine = 12\n")
    show_code(code, code={"source": "mine = 11\n", "html": ["mine = 11"]}, draft="")
    assert field.is_visible()
    assert field.input_value() == "mine = 12\n", "what is typed meanwhile stays"


def test_a_loop_that_fails_stays_open_with_its_own_line_marked(code: Any) -> None:
    text = "".join(f"line_{number} = 1\n" for number in range(60))
    field = write(code, text)
    press(code, "Run this loop")
    show_code(code, draft=text, wrong=50)
    assert field.input_value() == text
    wrong = code.locator(".gl-numbers .wrong")
    assert wrong.inner_text() == "✗ 50"
    shown, inside = wrong.bounding_box(), field.bounding_box()
    assert code.locator(".gl-numbers").bounding_box()["height"] == inside["height"]
    assert inside["y"] < shown["y"] < inside["y"] + inside["height"] - 10
    field.fill("mended = 1\n")
    press(code, "Run this loop")
    show_code(code, draft="", wrong=0, code={"source": "mended = 1\n", "html": ["mended = 1"]})
    assert not field.is_visible()


# The switches ---------------------------------------------------------------------------------------------------------

CONTROLS = [
    {"name": "zero_grad", "label": "zero_grad", "kind": "tick"},
    {"name": "amp", "label": "AMP", "kind": "choice", "options": [["off", "off"], ["bf16", "bf16"], ["fp16", "fp16"]]},
    {"name": "clip", "label": "clip", "kind": "choice", "options": [["off", None], ["1", 1.0]]},
    {"name": "accumulate", "label": "accumulate", "kind": "whole", "low": 1, "high": 64},
    {"name": "lr", "label": "lr", "kind": "number"},
]
VALUES = {"zero_grad": True, "amp": "off", "clip": None, "accumulate": 2, "lr": 0.1}


@pytest.fixture
def bar(page: Any) -> Any:
    page.evaluate(
        """([controls, values]) => {
          window.answers = [];
          const answered = (request) => { asked.push(request); return new Promise((done) => answers.push(done)); };
          window.bar = new ControlBar(root, {ask: answered});
          bar.show({controls, values, off: []});
        }""",
        [CONTROLS, VALUES],
    )
    return page


def answer(page: Any, **change: Any) -> None:
    page.evaluate("change => { bar.show(change); for (const done of answers.splice(0)) done(); }", change)
    next_frames(page)


def turned(page: Any) -> list[Any]:
    return [(request["name"], request["value"]) for request in new_requests(page)]


def test_switches_tell_what_was_chosen(bar: Any) -> None:
    bar.get_by_label("zero_grad").uncheck()
    bar.get_by_label("AMP").select_option("fp16")
    bar.get_by_label("clip").select_option("1")
    bar.get_by_label("clip").select_option("off")
    assert turned(bar) == [("zero_grad", False), ("amp", "fp16"), ("clip", 1), ("clip", None)]


@pytest.mark.parametrize("text", ["2.5", ""])
def test_a_number_is_told_as_typed_and_a_refused_one_goes_back(bar: Any, text: str) -> None:
    field = bar.get_by_label("accumulate", exact=True)
    field.fill(text)
    field.press("Enter")
    field.press("Enter")
    assert turned(bar) == [("accumulate", text)]
    assert field.input_value() == text
    answer(bar)
    assert field.input_value() == "2"
    assert field.evaluate("field => field === document.activeElement")


def test_a_tick_stands_until_the_newest_click_is_answered(bar: Any) -> None:
    box = bar.get_by_label("zero_grad")
    box.click()
    box.click()
    # the answer to the first click, which comes late
    bar.evaluate("() => { bar.show({values: {zero_grad: false}}); answers.shift()(); }")
    next_frames(bar)
    assert box.is_checked(), "as the second click left it"
    box.click()
    assert turned(bar) == [("zero_grad", False), ("zero_grad", True), ("zero_grad", False)]
    answer(bar, values={"zero_grad": False})
    assert not box.is_checked()
    answer(bar, values={"zero_grad": True})  # turned by a cell
    assert box.is_checked()


def test_numbers_are_turned_by_keys_buttons_and_label(bar: Any) -> None:
    lr, accumulate = bar.get_by_label("lr", exact=True), bar.get_by_label("accumulate", exact=True)
    lr.press("ArrowUp")
    assert turned(bar) == [("lr", "0.11")]
    accumulate.press("ArrowDown")
    accumulate.press("ArrowDown")  # 1 is the least
    assert turned(bar) == [("accumulate", "1")]
    bar.get_by_role("button", name="accumulate: more").click()
    bar.get_by_role("button", name="lr: less").click()
    assert turned(bar) == [("accumulate", "2"), ("lr", "0.1")]
    x, y = centre(bar.locator(".gl-number .gl-label").nth(1))
    bar.mouse.move(x, y)
    bar.mouse.down()
    bar.mouse.move(x + 8 * 7 + 2, y, steps=30)
    bar.mouse.up()
    values = [float(value) for _, value in turned(bar)]
    assert len(values) == 7
    assert values == sorted(values)
    assert 0.1 < values[0] < 0.12 < values[-1] < 0.2  # seven times by a tenth


def centre(locator: Any) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


# Words, themes, keys --------------------------------------------------------------------------------------------------


def test_only_a_new_kind_of_warning_is_read_out(page: Any) -> None:
    page.evaluate("() => { window.words = new Words(root, root); }")
    live = page.locator("[aria-live]")
    heights = []
    for alarm, spoken in [
        ("", ""),
        ("Step 41 applies gradients twice", "Warning: Step 41 applies gradients twice"),
        ("Step 42 applies gradients twice", "Warning: Step 41 applies gradients twice"),
        ("", "Warning: Step 41 applies gradients twice"),
        ("The loss is NaN", "Warning: The loss is NaN"),
    ]:
        page.evaluate("alarm => words.show({state: 'update 41', alarm, note: ''})", alarm)
        assert live.text_content() == spoken
        heights.append(page.evaluate("() => root.getBoundingClientRect().height"))
    assert len(set(heights)) == 1, heights


@pytest.mark.parametrize(
    ("script", "theme"),
    [
        ("document.body.dataset.jpThemeLight = 'false'", "dark"),
        ("document.body.className = 'vscode-dark'", "dark"),
        ("document.body.className = 'vscode-high-contrast'", "contrast"),
        ("document.documentElement.setAttribute('theme', 'dark')", "dark"),
        ("document.body.style.background = 'rgb(20, 20, 30)'", "dark"),
    ],
)
def test_the_theme_of_the_page_is_taken_over_while_it_runs(page: Any, script: str, theme: str) -> None:
    page.evaluate("() => { window.seen = []; window.end = followTheme(root, (theme) => seen.push(theme)); }")
    page.evaluate(script)
    page.wait_for_function("() => seen.length === 2")
    assert page.evaluate("() => seen") == ["light", theme]


def test_the_theme_of_the_system_counts_where_the_page_has_none(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("() => themeOf(root)") == "dark"
    page.emulate_media(contrast="more", color_scheme="light")
    assert page.evaluate("() => themeOf(root)") == "contrast-light"


def test_keys_stay_inside(page: Any) -> None:
    page.evaluate("""() => {
      window.heard = [];
      document.addEventListener('keydown', (event) => heard.push(event.key));
      window.end = keepKeys(root);
      addElement('input', root).focus();
    }""")
    page.keyboard.press("d")
    assert page.evaluate("() => [heard, document.activeElement.dataset.lmSuppressShortcuts]") == [[], "true"]
    page.evaluate("() => end()")
    page.keyboard.press("d")
    assert page.evaluate("() => heard") == ["d"]


@pytest.mark.parametrize("key", ["Shift+Enter", "Control+Enter", "Alt+Enter", "Escape"])
def test_keys_that_run_a_cell_or_leave_it_press_no_button(page: Any, key: str) -> None:
    """A notebook listens on the way up or, as Notebook 7, down; then it looks for the attribute."""
    page.evaluate("""() => {
      window.heard = [];
      window.pressed = 0;
      document.addEventListener('keydown', (event) => heard.push(event.key));
      document.addEventListener('keydown', (event) => heard.push(event.target.dataset.lmSuppressShortcuts), true);
      keepKeys(root);
      root.parentElement.className = 'jp-Cell';
      root.parentElement.tabIndex = -1;
      addButton(root, 'Play', () => pressed++).focus();
    }""")
    page.keyboard.press("Enter")
    assert page.evaluate("() => [pressed, heard.splice(0)]") == [1, ["true"]]
    page.keyboard.press(key)
    heard = page.evaluate("() => heard")
    assert heard[-2:] == [None, key.rpartition("+")[2]]
    assert set(heard[:-2]) <= {"true"}  # of the key that is held down
    assert page.evaluate("() => pressed") == 1
    assert page.evaluate("() => document.activeElement.className") == ("jp-Cell" if key == "Escape" else "gl-button")


def test_the_focus_ring_can_be_seen_in_every_theme(page: Any) -> None:
    page.evaluate("() => { addButton(root, 'Play', () => {}); }")
    page.keyboard.press("Tab")
    for theme in ("light", "dark", "contrast", "contrast-light"):
        ring, paper, width = page.evaluate(
            """theme => {
              applyTheme(root, theme);
              const ring = getComputedStyle(document.activeElement);
              const parts = (colour) => colour.match(/\\d+/g).map(Number);
              return [parts(ring.outlineColor), parts(getComputedStyle(root).backgroundColor), ring.outlineWidth];
            }""",
            theme,
        )
        assert width == "3px"
        assert page.evaluate("([a, b]) => contrastBetween(a, b)", [ring, paper]) >= 3, theme
        assert paper == page.evaluate(
            "theme => [1, 3, 5].map((at) => parseInt(colourOf('paper', theme).slice(at, at + 2), 16))", theme
        )


def test_a_view_in_a_shadow_root_has_the_style_there(page: Any) -> None:
    """As in marimo; in the document it is once, however many views there are."""
    module = joined_module("start")
    styles = page.evaluate(
        """async (module) => {
          const code = "export default { open: ({ el }) => { el.innerHTML = '<b>seen</b>'; return () => {}; } };";
          const style = "b { color: rgb(1, 2, 3); }";
          let listen;
          const model = { get: () => "a", on: (_, act) => listen = act, off() {}, send: () => listen({ code, style }) };
          const start = (await import(URL.createObjectURL(new Blob([module], { type: "text/javascript" })))).default;
          const shadow = addElement("div", root).attachShadow({ mode: "open" });
          const views = [root, root, shadow, shadow].map((place) => place.appendChild(document.createElement("div")));
          for (const el of views) await start.render({ model, el });
          return [...views.map((el) => getComputedStyle(el.firstChild).color),
            ...[document, shadow].map((place) => [...place.querySelectorAll("style")].filter(
              (each) => each.textContent === style).length)];
        }""",
        module,
    )
    assert styles == ["rgb(1, 2, 3)"] * 4 + [1, 1]
