"""The whole site: its pages in a real browser, from disk, with nothing from outside; by night with every recording."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser.driving import chromium, violations
from gradlab_site import build
from gradlab_site.check import MOST_REPLAY, wire_size
from gradlab_site.notebook_html import read_notebook
from gradlab_site.pages import html_soup
from playwright.sync_api import sync_playwright

from gradlab.course import cheat_sheet
from gradlab.formatting import inline_html
from gradlab.widgets import find_question, question_names

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = [path.stem for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
ALL = bool(os.environ.get("GRADLAB_NIGHTLY"))
"""Whether every lab is recorded, axe looks at every page, and every slide is shown; otherwise some of each."""
RECORDED = NUMBERS if ALL else NUMBERS[2:4]
"""Lessons with recordings, which take time: 02 has labs, 03 an instrument. The others show stills."""
SHOWN = NUMBERS if ALL else [NUMBERS[3], NUMBERS[12]]
SOME = {"light": ["index", NUMBERS[3], "answers"], "dark": ["index"]}
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        chromium() is None and not os.environ.get("GRADLAB_REQUIRE_BROWSER"),
        reason="needs Chromium (Debian: apt-get install chromium)",
    ),
]
READY = """() => [...document.querySelectorAll('.gl-recording')].every((each) =>
  !each.getClientRects().length || each.closest('.gl-bet-hides') || 'live' in each.dataset)"""
# What is seen of a recording: its words, its switches and its pictures.
SEEN = """place => [place.querySelector('.gradlab').innerText,
  ...[...place.querySelectorAll('input, select')].map((each) => each.type === 'checkbox' ? each.checked : each.value),
  ...[...place.querySelectorAll('canvas')].map((each) => each.toDataURL())].join()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site; nothing is wrong with it. GRADLAB_SITE names one that was written before, to try tests quickly."""
    if given := os.environ.get("GRADLAB_SITE"):
        return Path(given)
    record_all = build.record_all

    def record_some(notebooks: list[Path], *how: Any, **more: Any) -> Iterator[Any]:
        yield from record_all([path for path in notebooks if path.stem in RECORDED], *how, **more)
        yield from ((path, []) for path in notebooks if path.stem not in RECORDED)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "record_all", record_some)
        out = tmp_path_factory.mktemp("site") / "pages"
        assert build.build_site(ROOT, out, build.SiteAddress("https://github.com/YOU/NAME")) == []
    return out


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """A Chromium."""
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
        yield browser
        browser.close()


class Visit:
    """A page of the site in a window of its own; `faults` has errors, refusals and requests to elsewhere."""

    def __init__(self, driver: Any, **how: Any) -> None:
        self.context = driver.new_context(offline=True, **how)
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        self.page.on(
            "request", lambda asked: None if re.match("(file|data):", asked.url) else self.faults.append(asked.url)
        )

    def open(self, path: Path, place: str = "") -> Any:
        self.page.goto(path.as_uri() + place)
        return self.page


@pytest.fixture
def visit(driver: Any) -> Iterator[Visit]:
    visit = Visit(driver, viewport={"width": 1366, "height": 768})
    yield visit
    visit.context.close()
    assert visit.faults == []


def answer_all(page: Any) -> None:
    """Choose the first option of each question; a replay says whether it was right when asked."""
    for bet in page.locator(".gl-bet").all():
        bet.locator("li button").first.click()
        assert bet.get_attribute("data-settled") is not None
        if bet.get_attribute("data-settled") == "said":
            bet.evaluate(
                "bet => [...bet.querySelectorAll('button')].find((each) => each.textContent === 'Tell me')?.click()"
            )
        assert bet.locator(".gl-bet-right").count() == 1
    assert page.locator(".gl-bet-hides").count() == 0


def play(page: Any, place: Any) -> None:
    """Play a replay, or turn a control of an instrument: what is seen changes."""
    place.scroll_into_view_if_needed()
    page.wait_for_function("place => 'live' in place.dataset", arg=place.element_handle())
    before = place.evaluate(SEEN)
    if place.get_attribute("data-kind") == "replay":
        place.get_by_role("button", name="Play").click()
        page.wait_for_function(f"([place, before]) => ({SEEN})(place) !== before", arg=[place.element_handle(), before])
        return
    field = place.locator(".gl-controls :is(select, input:not([disabled])):visible").first
    kind = field.evaluate("field => field.localName === 'select' ? 'select' : field.type")
    if kind == "select":
        at = field.evaluate("field => field.selectedIndex")
        field.select_option(index=0 if at else 1)
    elif kind == "range":
        field.press("Home")
        field.press("ArrowRight")
    else:
        field.click()
    page.wait_for_function(f"([place, before]) => ({SEEN})(place) !== before", arg=[place.element_handle(), before])


@pytest.mark.timeout(0)  # the first of them waits for the site
@pytest.mark.parametrize("name", RECORDED)
def test_every_lesson_answers_and_plays_from_disk(name: str, site: Path, visit: Visit) -> None:
    page = visit.open(site / f"{name}.html")
    page.evaluate("() => document.querySelectorAll('details:not(.menu, .series)').forEach((each) => each.open = true)")
    answer_all(page)
    places = page.locator(".gl-recording").all()
    for place in places:
        play(page, place)
    stills = page.locator(".still").count()
    assert stills == 0, "what can be played is not shown as a still"
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_first_page_is_a_lab_a_bet_and_the_map(site: Path, visit: Visit) -> None:
    page = visit.open(site / "index.html")
    place = page.locator("#lab-home")
    page.wait_for_function("() => 'live' in document.querySelector('#lab-home').dataset")
    assert place.locator(".gl-player .gl-main").bounding_box()["y"] < 768
    place.locator("pre.gl .turns").click()
    place.locator(".gl-chip", has_text="was not cleared").wait_for()
    place.get_by_role("button", name="Reset").click()
    assert place.locator("pre.gl .turns").get_attribute("aria-pressed") == "true"
    answer_all(page)
    page.get_by_role("link", name="See it").click()
    place.locator("pre.gl .turns[aria-pressed=false]").wait_for()
    place.get_by_role("button", name="Play").click()
    place.locator(".gl-chip", has_text="was not cleared").wait_for()
    assert page.locator(".map li").count() == len(NUMBERS)


@pytest.mark.parametrize("name", SHOWN)
def test_the_slides_go_on_and_fit_a_projector(name: str, site: Path, visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    page = visit.open(site / "slides" / f"{name}.html")
    page.locator("output").wait_for()
    count = int(page.locator("output").inner_text().split("/")[1])
    too_high = []
    for at in range(1, count + 1):
        assert page.locator("output").inner_text() == f"{at} / {count}"
        if (bet := page.locator(".gl-bet:visible:not([data-settled])")).count():
            bet.locator("li button").first.click()
        assert page.locator("[data-slide]:visible").count() > 0
        page.wait_for_function(READY)
        page.wait_for_timeout(100)
        if page.evaluate(
            "() => { const m = document.querySelector('main'); return m.scrollHeight > m.clientHeight + 2; }"
        ):
            too_high.append(at)
        page.keyboard.press("PageDown")
    assert too_high == []


@pytest.mark.parametrize("name", SHOWN)
def test_slides_skip_what_is_covered_and_caption_labs(name: str, site: Path, visit: Visit) -> None:
    page = visit.open(site / "slides" / f"{name}.html")
    shown, now = 0, ""
    while (at := page.locator("output").inner_text()) != now:
        now, shown = at, shown + 1
        assert len(page.locator("main").inner_text().strip()) > 20, now
        if page.locator(".wide-cell:visible").count():
            assert "What to see" in page.locator(".lab-caption:visible").inner_text()
        page.keyboard.press("PageDown")
    assert 3 < shown < int(now.split("/")[1])
    page.goto(page.url.split("#")[0] + f"#{int(page.locator('.gl-bet-hides').first.get_attribute('data-slide')) + 1}")
    assert page.locator(".gl-bet:visible").count() == 1, "an address of a covered slide leads to its bet"


def test_nothing_jumps_when_a_lab_begins_to_play(site: Path, visit: Visit) -> None:
    page = visit.open(site / f"{RECORDED[0]}.html")
    for place in reversed(page.locator(".gl-recording").all()):  # those below come to life, too, and to their height
        if place.evaluate("place => place.checkVisibility() && !place.closest('.gl-bet-hides')"):
            place.scroll_into_view_if_needed()
            page.wait_for_function("place => 'live' in place.dataset", arg=place.element_handle())
    tops = """() => [...document.querySelectorAll('.cells > .jp-Cell, main h2, .gl-recording')]
      .filter((each) => each.checkVisibility()).map((each) => each.getBoundingClientRect().top + scrollY)"""
    before = page.evaluate(tops)
    place.get_by_role("button", name="Play").click()
    page.wait_for_timeout(400)
    assert page.locator("body.gl-playing").count() == 1
    assert page.evaluate(tops) == before


def test_other_pages_open_without_a_fault(site: Path, visit: Visit) -> None:
    others = [path for path in sorted(site.glob("*.html")) if path.stem not in RECORDED]
    assert len(others) > 12
    for path in others:
        page = visit.open(path)
        assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0, path.name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(theme: Any, site: Path, driver: Any) -> None:
    names = [path.stem for path in site.glob("*.html")] if ALL else SOME[theme]
    visit = Visit(driver, viewport={"width": 390, "height": 844}, color_scheme=theme)
    found = {}
    for name in names:
        page = visit.open(site / f"{name}.html")
        page.wait_for_timeout(300)
        if bad := [each for each in violations(page) if re.search(r"\((serious|critical)\)", each)]:
            found[name] = bad
    visit.context.close()
    assert found == {}


class _Text(HTMLParser):
    """The text of a page that can be read before anything is pressed: without what a question covers."""

    VOID = ("meta", "link", "img", "input", "br", "hr", "source", "col", "wbr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[bool] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append("gl-bet-hides" in (dict(attrs).get("class") or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not any(self.open):
            self.text.append(data)


def test_no_page_tells_an_answer_before_the_choice(site: Path) -> None:
    secrets = {}
    for name in question_names():
        question = find_question(name)
        for said in (question.why, *(option.remark for option in question.options if option.remark)):
            secrets[inline_html(said)] = (_plain(said.replace("`", "")), name)
    assert len(secrets) == sum(len(find_question(name).options) for name in question_names())  # a why, and remarks
    lessons = [path for path in site.glob("*.html") if path.stem != "answers"]
    for path in [*lessons, *site.glob("slides/*.html")]:
        whole = path.read_text(encoding="utf-8")
        seen = _Text()
        seen.feed(whole)
        told = _plain("".join(seen.text))
        assert [name for raw, (said, name) in secrets.items() if said in told or raw in whole] == [], path.name


class _Code(HTMLParser):
    """The text of each code: the blocks of a lesson's cells with ``within`` "pre", every code with "code"."""

    def __init__(self, within: str, text: str) -> None:
        super().__init__()
        self.within, self.is_open = within, False
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == self.within:
            self.is_open = True
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        self.is_open = self.is_open and tag != self.within

    def handle_data(self, data: str) -> None:
        if self.is_open:
            self.found[-1] += data


def test_every_code_line_on_the_site_equals_its_source(site: Path) -> None:
    sheet = _Code("code", cheat_sheet().html).found
    assert any(each.startswith("        ") for each in sheet)
    assert _Code("code", (site / "cheat_sheet.html").read_text(encoding="utf-8")).found == sheet
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = read_notebook(path).cells
        outputs = [
            each.data.get("text/html", "") for cell in cells for each in cell.get("outputs", ()) if "data" in each
        ]
        inline = {text for each in outputs for text in _Code("code", each).found}
        sources = {cell.source.strip() for cell in cells if cell.cell_type == "code"}
        fences = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
        fenced = {text.strip() for cell in cells for text in fences.findall(cell.source)}
        for page in (site / f"{path.stem}.html", site / "slides" / f"{path.stem}.html"):
            text = page.read_text(encoding="utf-8")
            blocks = re.findall(r'<div class="highlight[^"]*">(.*?</pre>)', text, re.DOTALL)
            told = [_Code("pre", block).found[0].strip() for block in blocks]
            assert [each for each in told if each not in sources | fenced] == [], page.name
            indented = [each for each in _Code("code", text).found if each.startswith("  ")]
            assert [each for each in indented if each not in inline] == [], page.name


TELLS_TO_RUN = re.compile(
    r"(?:^|[.:;,!?] |\band |\bthen |\bnow )(?:re-?)?run (?:the|this|its|that|these|those|them|all|every)\b"
    r"[^.:]*\bcells?\b"
    r"|No buttons|Run All|Shift ?\+ ?Enter",
    re.IGNORECASE,
)


def test_no_page_tells_the_reader_to_run_a_cell(site: Path) -> None:
    assert TELLS_TO_RUN.search("Run the next two cells and press Play")
    about_notebooks = (
        "teach.html",
        "ninety_minutes.html",
        "classroom.html",
        "tested.html",
        "contributing.html",
        "changelog.html",
    )
    for page in (each for each in site.rglob("*.html") if each.name not in about_notebooks):
        soup = html_soup(page.read_text(encoding="utf-8"))
        for element in soup.select("p, li, td, figcaption, summary"):
            words = _plain(element.get_text())
            assert not TELLS_TO_RUN.search(words), f"{page.name}: {words[:200]}"


def test_the_verdict_comes_first_and_developers_have_one_link(site: Path) -> None:
    soup = html_soup((site / "fact_check.html").read_text(encoding="utf-8"))
    assert {row.find("td").get_text().split()[0] for row in soup.select("tbody tr")} == {
        "holds",
        "does",
        "depends",
        "half",
        "held",
        "not",
    }
    footer = [link.get_text() for link in soup.select("footer a")]
    assert footer.count("For developers") == 1
    assert not {"Architecture", "Security", "The widgets", "How it is tested", "Live in a tab"} & {*footer}


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def test_the_search_finds_words_and_no_answers(site: Path, driver: Any) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1", "-d", str(site)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert server.stdout is not None
        port = re.search(r"port (\d+)", server.stdout.readline())
        assert port
        page = driver.new_page()
        problems: list[str] = []
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.goto(f"http://127.0.0.1:{port[1]}/index.html")
        page.locator("header input").fill("retain_grad")
        page.keyboard.press("Enter")
        page.locator("#found li").first.wait_for()
        assert "01" in page.locator("#found li").first.inner_text()
        page.goto(f"http://127.0.0.1:{port[1]}/search.html?q=why+does+the+loss+swing")
        page.locator("#found li").nth(3).wait_for()
        found = page.locator("#found")
        assert found.inner_text().startswith("03")
        assert "\u00b6" not in found.inner_text()
        assert {each.lower() for each in found.locator("mark").all_inner_texts()} & {"the", "does", "why"} == set()
        page.goto(f"http://127.0.0.1:{port[1]}/search.html?q=%22It+rises+and+swings%22")
        page.locator("#said").wait_for()
        assert problems == []
        page.close()
    finally:
        server.kill()
        server.wait()


def test_recordings_are_small_and_each_is_asked_for(site: Path) -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in site.glob("*.html"))
    files = sorted((site / "replays").glob("*.js"))
    assert len(files) > (30 if ALL else 3)
    for path in files:
        assert wire_size(path) <= MOST_REPLAY
        assert f'data-src="replays/{path.name}"' in pages
