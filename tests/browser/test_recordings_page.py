"""A page with several recordings and a question, as on the site: from disk, under a strict policy, with one script."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gradlab import Lab, Recipe, predict
from gradlab.course import peak
from gradlab.drawing import to_png
from gradlab.front import page_script, page_style

from .driving import Notebook, button_of, next_frames
from .test_instruments import touch

MARK = 10
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'"
LOG_VIOLATIONS = (
    "addEventListener('securitypolicyviolation', (event) => console.error('policy', event.violatedDirective));"
)
QUESTION = "home/zero-grad-taken-out"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page: a replay, then far below a question that covers an instrument, then far below another replay."""
    folder = tmp_path_factory.mktemp("site")
    recordings = {
        "one": Lab("digits", Recipe(lr=0.2), controls=["zero_grad"], panels=["held-out loss", "gradient"])
        .record(60, switches=["zero_grad"], marks=[MARK, 40])
        .packed(),
        "two": Lab("line", Recipe(lr=0.01)).record(20).packed(),
        "three": peak().packed(),
        "alive": Lab("digits", Recipe(lr=0.2), controls=["line"], panels=["picture", "gradient"], speed="10 updates/s")
        .record(40, switches=["zero_grad"], marks=[10, 20, 30], turns=2)
        .packed(),
    }
    for name, each in recordings.items():
        (folder / f"{name}.js").write_text(f'gradlabRecording("{name}", "{each.packed}");\n', encoding="utf-8")
        (folder / f"{name}.png").write_bytes(to_png(each.still))
    (folder / "page.js").write_text(page_script(), encoding="utf-8")
    (folder / "page.css").write_text(f"{page_style()}.far {{ height: 3000px; }} img {{ max-width: 100%; }}\n", "utf-8")

    def recording(name: str, source: str = "") -> str:
        each = recordings[name]
        still = f'<img src="{name}.png" alt="{html.escape(each.alt)}"><p class="words">{html.escape(each.alt)}</p>'
        data = f'data-kind="{each.kind}" data-src="{source or name}.js" data-title="Recording {name}"'
        plays = " data-autoplay" if name == "alive" else ""
        return f'<div class="gl-recording" id="lab-{name}" {data}{plays}>{still}</div>'

    def cell(output: str) -> str:
        area = f'<div class="jp-OutputArea-child">{output}</div>'
        return f'<div class="jp-Cell jp-CodeCell"><div class="jp-Cell-outputWrapper">{area}</div></div>'

    def page(name: str, content: str) -> None:
        policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        head = f'{policy}<title>{name}</title><link rel="icon" href="data:,"><link rel="stylesheet" href="page.css">'
        view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
        start = (
            f'<!doctype html><html lang="en"><meta charset="utf-8">{view}{head}<script defer src="page.js"></script>'
        )
        (folder / f"{name}.html").write_text(f"{start}<body><main>{content}</main></body></html>", encoding="utf-8")

    bet = re.sub(r"<style>.*</style>|<script.*</script>", "", question_html(QUESTION), flags=re.DOTALL)
    far = '<div class="far"></div>'
    covered = f"<section>{cell(bet)}{cell(recording('three'))}</section>"
    below = f'<p id="below">Below.</p>{far}{covered}{far}'
    page("many", f'<h1>Many</h1>{recording("one")}{below}{recording("two")}<h2 id="end">End</h2>')
    page("alive", f"<h1>Alive</h1>{recording('alive')}")
    page("missing", f"<h1>Missing</h1>{recording('one', 'none')}{recording('two')}")
    return folder


def question_html(name: str) -> str:
    """Return a question as in a saved notebook."""
    return str(predict(name)._repr_mimebundle_()["text/html"])


@pytest.fixture(scope="module")
def browser(notebook: Notebook) -> Iterator[Any]:
    browser = notebook.new_browser()
    yield browser
    browser.close()


@pytest.fixture
def visit(browser: Any, site: Path) -> Iterator[Callable[..., Any]]:
    """A function that opens a page from disk; requests outside of its folder and errors fail the test."""
    problems: list[str] = []
    pages: list[Any] = []
    context = browser.new_context(reduced_motion="reduce")

    def open_(address: str = "many.html", width: int = 1366, height: int = 768) -> Any:
        page = context.new_page()
        pages.append(page)
        page.requested = []
        page.add_init_script(LOG_VIOLATIONS)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: page.requested.append(request.url))
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{site.as_uri()}/{address}")
        return page

    yield open_
    foreign = [url for page in pages for url in page.requested if not url.startswith((site.as_uri(), "data:"))]
    context.close()
    assert foreign == []
    assert [each for each in problems if "none.js" not in each and "ERR_FILE_NOT_FOUND" not in each] == []


def live(page: Any, name: str) -> Any:
    """Return the screen of a recording once it is loaded."""
    page.wait_for_selector(f"#lab-{name}[data-live] canvas")
    return page.locator(f"#lab-{name} .gradlab")


def is_live(page: Any, name: str) -> bool:
    return page.locator(f"#lab-{name}[data-live]").count() == 1


def loaded(page: Any) -> list[str]:
    return [match[1] for url in page.requested if (match := re.search(r"/(\w+)\.js$", url)) and match[1] != "page"]


def address(page: Any, pattern: str) -> str:
    """Wait until the address matches a pattern, and return it; ``page.url`` follows a change only later."""
    page.wait_for_function("pattern => new RegExp(pattern).test(location.href)", arg=pattern)
    return str(page.evaluate("() => location.href"))


def updates(lab: Any) -> int:
    match = re.match(r"update ([\d,]+)", lab.locator(".gl-state").inner_text())
    assert match
    return int(match[1].replace(",", ""))


def press(lab: Any, label: str) -> None:
    button_of(lab, label).click()


def note(lab: Any) -> str:
    return str(lab.locator(".gl-note").inner_text())


def run_until(lab: Any, condition: Callable[[], bool]) -> None:
    """Run the page's clock, which stands still, until a condition holds, for at most 10 of its seconds."""
    for _ in range(200):
        if condition():
            return
        lab.page.clock.run_for(50)
    assert condition()


def alive(visit: Callable[..., Any], motion: str) -> tuple[Any, Any]:
    """Open the page with a recording that plays by itself, with this preference for motion; return lab and switch."""
    page = visit("alive.html")
    page.emulate_media(reduced_motion=motion)
    page.clock.install()
    page.reload()
    lab = live(page, "alive")
    page.clock.pause_at(datetime.fromtimestamp(page.evaluate("Date.now()") / 1000 + 0.05))
    return lab, page.locator("pre.gl .turns")


def test_it_plays_on_its_own_in_three_beats(visit: Callable[..., Any]) -> None:
    lab, _ = alive(visit, "no-preference")
    lit = "() => document.querySelector('pre.gl .lit .text').textContent.trim()"
    lines = []
    for _ in range(40):
        lines.append(lab.page.evaluate(lit))
        lab.page.clock.run_for(50)
    calls = [line for index, line in enumerate(lines) if index and line != lines[index - 1]]
    first = calls.index("optimizer.zero_grad()")
    assert calls[first : first + 3] == ["optimizer.zero_grad()", "loss.backward()", "optimizer.step()"]
    run_until(lab, lambda: updates(lab) == 40)
    run_until(lab, lambda: "begins again" in note(lab))
    assert MARK <= updates(lab) < 40
    press(lab, "Pause")
    paused_at = updates(lab)
    lab.page.clock.run_for(500)
    assert updates(lab) == paused_at


def test_it_stands_still_for_who_wants_less_motion(visit: Callable[..., Any]) -> None:
    lab, line = alive(visit, "reduce")
    lab.page.clock.run_for(700)
    assert updates(lab) == MARK
    line.click()
    run_until(lab, lambda: updates(lab) > MARK)


def test_no_press_of_the_line_is_dead(visit: Callable[..., Any]) -> None:
    """At any time and repeatedly: it shows the new state at once, and the lab follows within some updates."""
    lab, line = alive(visit, "no-preference")
    for turn in range(7):
        on = line.get_attribute("aria-pressed") == "true"
        line.click()
        assert line.get_attribute("aria-pressed") == str(not on).lower(), f"press {turn}"
        script = f"() => !document.querySelector('pre.gl .turns s') === {str(not on).lower()}"
        run_until(lab, partial(lab.page.evaluate, script))
        assert "pending" not in str(line.get_attribute("class"))
        lab.page.clock.run_for(300 * turn)
        if updates(lab) < 40:
            assert line.get_attribute("aria-pressed") == str(not on).lower(), f"press {turn}"


def test_a_recording_is_loaded_when_it_comes_near(visit: Callable[..., Any]) -> None:
    page = visit()
    digits = live(page, "one")
    assert loaded(page) == ["one"]
    assert updates(digits) == MARK
    assert digits.get_attribute("aria-label") == "gradlab replay: Recording one"
    assert not page.locator("#lab-one > .words").is_visible(), "the screen replaces the still"
    assert page.locator("#lab-two > .words").text_content(), "another keeps its still and text"
    page.locator("#end").scroll_into_view_if_needed()
    assert updates(live(page, "two")) == 20
    assert loaded(page) == ["one", "two"], "a recording that was passed quickly is not loaded"
    assert "#" not in page.evaluate("() => location.href"), "nothing is written to the address by loading"


def test_a_question_covers_a_recording_until_the_choice(visit: Callable[..., Any]) -> None:
    page = visit("many.html#lab-three")
    page.evaluate("() => document.querySelector('section').scrollIntoView()")
    page.wait_for_selector(".gl-bet-cover")
    next_frames(page)
    assert "three" not in loaded(page)
    assert not is_live(page, "three")
    page.locator(".gl-bet li button").first.click()
    instrument = live(page, "three")
    assert page.locator(".gl-bet[data-settled]").count() == 1
    instrument.get_by_label("batch").first.focus()
    page.keyboard.press("ArrowRight")
    address(page, "#lab-three&.*batch=")


def test_one_plays_at_a_time_and_none_out_of_sight(visit: Callable[..., Any]) -> None:
    page = visit()
    digits = live(page, "one")
    page.locator("#end").scroll_into_view_if_needed()
    line = live(page, "two")
    page.evaluate("() => document.querySelector('.far').remove()")
    page.evaluate("() => document.querySelectorAll('section, .far').forEach((each) => each.remove())")
    for lab in (digits, line):
        lab.locator(".gl-scrub input").fill("0")
    page.set_viewport_size({"width": 1366, "height": 2400})
    press(digits, "Play")
    page.wait_for_function("() => !/^update [01] /.test(document.querySelector('#lab-one .gl-state').innerText)")
    press(line, "Play")
    assert digits.get_by_role("button", name="Play").first.is_visible(), "the first has paused"
    page.wait_for_function("() => document.querySelector('#lab-two .gl-note').innerText.includes('begins again')")
    press(digits, "Play")
    page.evaluate("() => document.querySelector('#lab-one').style.marginTop = '9000px'")
    page.wait_for_function("() => document.querySelector('#lab-one .gl-main').innerText.includes('Play')")


def test_an_address_goes_to_its_recording_and_moment(visit: Callable[..., Any]) -> None:
    page = visit("many.html#end")
    line = live(page, "two")
    assert page.evaluate("() => location.hash") == "#end", "another's address is left alone"
    press(line, "1 update")
    address(page, r"#lab-two&frame=\d+$")
    page.evaluate("() => location.hash = '#lab-one&frame=30&turns=zero_grad-10-false'")
    digits = live(page, "one")
    assert updates(digits) > MARK
    assert not digits.get_by_label("zero_grad", exact=True).is_checked()
    assert abs(page.evaluate("() => document.querySelector('#lab-one').getBoundingClientRect().top")) < 2
    press(digits, "1 update")
    link, state = address(page, "#lab-one&frame=31&turns=zero_grad-10-false$"), digits.locator(".gl-state").inner_text()
    again = live(visit(link.rsplit("/", 1)[1]), "one")
    assert again.locator(".gl-state").inner_text() == state


def test_where_a_recording_is_missing_its_picture_stays(visit: Callable[..., Any]) -> None:
    page = visit("missing.html")
    page.wait_for_selector("#lab-one .gl-recording-failed")
    assert "could not be loaded" in page.locator("#lab-one .gl-recording-failed").inner_text()
    assert page.locator("#lab-one > img").is_visible()
    assert page.locator("#lab-one > .words").is_visible()
    live(page, "two")


def test_paper_gets_the_still(visit: Callable[..., Any]) -> None:
    page = visit()
    digits = live(page, "one")
    page.emulate_media(media="print")
    assert page.locator("#lab-one > img").is_visible()
    assert not digits.is_visible()
    page.emulate_media(media="screen")
    assert digits.is_visible()


def test_a_finger_scrubs_on_a_curve_and_on_the_slider(visit: Callable[..., Any]) -> None:
    page = visit("many.html#lab-one&frame=20", width=390, height=844)
    digits = live(page, "one")
    slider = digits.locator(".gl-scrub input").bounding_box()
    assert slider["height"] >= 44
    assert digits.locator(".gl-scrub").bounding_box()["width"] > 340
    canvas = digits.locator("[data-panel='held-out loss'] canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    middle = box["y"] + box["height"] / 2
    before = updates(digits)
    touch(page, (box["x"] + 100, middle), (box["x"] + 200, middle))
    assert updates(digits) > before + 10
    address(page, r"#lab-one&frame=\d+")
    touch(page, (box["x"] + 200, middle), (box["x"] + 100, middle))
    assert abs(updates(digits) - before) <= 1
    scroll, update = page.evaluate("() => scrollY"), updates(digits)
    touch(page, (box["x"] + 100, middle), (box["x"] + 104, middle - 120))
    next_frames(page)
    assert updates(digits) == update, "up and down it scrolls the page"
    assert page.evaluate("() => scrollY") > scroll + 50


def test_a_line_is_gone_back_to_and_a_turn_is_taken_back(visit: Callable[..., Any]) -> None:
    page = visit("many.html#lab-one&frame=40")
    digits = live(page, "one")
    start = updates(digits)
    backward = digits.locator(".line", has_text="loss.backward()")
    backward.click()
    assert "Went back" in note(digits)
    assert updates(digits) < start
    assert "lit" in str(backward.get_attribute("class"))
    press(digits, "From zero")
    backward.click()
    assert "Went on until line" in note(digits)
    switch = digits.get_by_label("zero_grad", exact=True)
    switch.uncheck()
    assert f"will be turned to off at update {MARK}" in note(digits)
    switch.check()
    assert "stays as it is" in note(digits)
    digits.locator(".gl-scrub input").fill(str(MARK + 5))
    assert switch.is_checked()
    digits.locator(".gl-scrub input").fill("3")
    switch.uncheck()
    digits.locator(".gl-scrub input").fill(str(MARK + 5))
    assert not switch.is_checked(), "the slider was moved past the turn"
    assert f"Here zero_grad was turned to off (update {MARK})" in note(digits)
    digits.locator(".gl-scrub input").fill("3")
    assert "will be turned to off" in note(digits)
    digits.locator(".gl-scrub input").fill(str(MARK + 5))
    address(page, "turns=zero_grad-10-false")
