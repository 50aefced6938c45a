"""The whole site in a real browser, from disk and offline; nightly with every recording."""

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
from browser.driving import chromium, next_frames, violations
from gradlab_site import build
from gradlab_site.check import MAX_REPLAY_BYTES, wire_size
from gradlab_site.notebook_html import read_notebook
from gradlab_site.pages import html_soup
from playwright.sync_api import sync_playwright

from gradlab.course import cheat_sheet
from gradlab.formatting import inline_html
from gradlab.widgets import find_question, question_names

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = [path.stem for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
ALL = bool(os.environ.get("GRADLAB_NIGHTLY"))
"""Whether the site has every lesson and recording, axe checks every page, and every slide is shown; or some of each."""
LESSONS = [name for name in NUMBERS if ALL or name[:2] in ("00", "02", "03", "09", "10", "12")]
"""The lessons of the site: 02 is played, other pages link to 00, 03, 09, 10 and 12."""
RECORDED = NUMBERS if ALL else NUMBERS[2:3]
"""Lessons with recordings, which are slow: 02 has two labs. The others show stills."""
SLIDES = NUMBERS if ALL else [NUMBERS[2], NUMBERS[12]]
AXE_PAGES = {"light": ["index", NUMBERS[3], "answers"], "dark": ["index"]}
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        chromium() is None and not os.environ.get("GRADLAB_REQUIRE_BROWSER"),
        reason="needs Chromium (Debian: apt-get install chromium)",
    ),
]
RECORDINGS_LOADED = """() => [...document.querySelectorAll('.gl-recording')].every((each) =>
  !each.getClientRects().length || each.closest('.gl-bet-hides') || 'live' in each.dataset)"""
# The text, switches and pictures of a recording.
SNAPSHOT = """element => [element.querySelector('.gradlab').innerText,
  ...[...element.querySelectorAll('input, select')].map((each) => each.type === 'checkbox' ? each.checked : each.value),
  ...[...element.querySelectorAll('canvas')].map((each) => each.toDataURL())].join()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site without problems, or use the one in GRADLAB_SITE, to try tests quickly."""
    if folder := os.environ.get("GRADLAB_SITE"):
        return Path(folder)
    record_all, files = build.record_all, {f"{name}.ipynb" for name in LESSONS}
    notebooks = [notebook for notebook in build.series_notebooks() if notebook.file in files]
    stages = [(heading, [each for each in group if each in notebooks]) for heading, group in build.series_stages()]

    def record_some(notebooks: list[Path], settings: Any, *args: Any, **options: Any) -> Iterator[Any]:
        if not ALL:  # its five marks make sixteen runs; the page links to one of them
            settings["home"]["marks"] = [160, 200]
        yield from record_all([path for path in notebooks if path.stem in RECORDED], settings, *args, **options)
        yield from ((path, []) for path in notebooks if path.stem not in RECORDED)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "record_all", record_some)
        patch.setattr(build, "series_notebooks", lambda: notebooks)
        patch.setattr(build, "series_stages", lambda: stages)
        out = tmp_path_factory.mktemp("site") / "pages"
        assert build.build_site(ROOT, out, build.SiteAddress("https://github.com/YOU/NAME")) == []
    return out


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
        yield browser
        browser.close()


class Visit:
    """A page of the site in a new window; ``faults`` collects errors and requests to other hosts."""

    def __init__(self, driver: Any, **options: Any) -> None:
        self.context = driver.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)
        self.page.on("request", lambda request: self._check_url(request.url))

    def _check_url(self, url: str) -> None:
        if not re.match("(file|data):", url):
            self.faults.append(url)

    def open(self, path: Path, fragment: str = "") -> Any:
        self.page.goto(path.as_uri() + fragment)
        return self.page


@pytest.fixture
def visit(driver: Any) -> Iterator[Visit]:
    visit = Visit(driver, viewport={"width": 1366, "height": 768})
    yield visit
    visit.context.close()
    assert visit.faults == []


def answer_all(page: Any) -> None:
    """Choose the first option of each question; questions about replays show the answer on request."""
    for bet in page.locator(".gl-bet").all():
        bet.locator("li button").first.click()
        assert bet.get_attribute("data-settled") is not None
        if bet.get_attribute("data-settled") == "chosen":
            bet.evaluate(
                "bet => [...bet.querySelectorAll('button')].find((each) => each.textContent === 'Tell me')?.click()"
            )
        assert bet.locator(".gl-bet-right").count() == 1
    assert page.locator(".gl-bet-hides").count() == 0


def play(page: Any, recording: Any) -> None:
    """Play a replay, or change a control of an instrument; wait until it looks different."""
    recording.scroll_into_view_if_needed()
    page.wait_for_function("element => 'live' in element.dataset", arg=recording.element_handle())
    before = recording.evaluate(SNAPSHOT)
    if recording.get_attribute("data-kind") == "replay":
        recording.get_by_role("button", name="Play").click()
        page.wait_for_function(
            f"([element, before]) => ({SNAPSHOT})(element) !== before", arg=[recording.element_handle(), before]
        )
        return
    field = recording.locator(".gl-controls :is(select, input:not([disabled])):visible").first
    kind = field.evaluate("field => field.localName === 'select' ? 'select' : field.type")
    if kind == "select":
        index = field.evaluate("field => field.selectedIndex")
        field.select_option(index=0 if index else 1)
    elif kind == "range":
        field.press("Home")
        field.press("ArrowRight")
    else:
        field.click()
    page.wait_for_function(
        f"([element, before]) => ({SNAPSHOT})(element) !== before", arg=[recording.element_handle(), before]
    )


@pytest.mark.timeout(0)  # the first test builds the site
@pytest.mark.parametrize("name", RECORDED)
def test_every_lesson_answers_and_plays_from_disk(name: str, site: Path, visit: Visit) -> None:
    page = visit.open(site / f"{name}.html")
    page.evaluate("() => document.querySelectorAll('details:not(.menu, .series)').forEach((each) => each.open = true)")
    answer_all(page)
    recordings = page.locator(".gl-recording").all()
    for recording in recordings:
        play(page, recording)
    stills = page.locator(".still").count()
    assert stills == 0, "what can be played is not shown as a still"
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_first_page_is_a_lab_a_bet_and_the_map(site: Path, visit: Visit) -> None:
    page = visit.open(site / "index.html")
    lab = page.locator("#lab-home")
    page.wait_for_function("() => 'live' in document.querySelector('#lab-home').dataset")
    assert lab.locator(".gl-player .gl-main").bounding_box()["y"] < 768
    lab.locator("pre.gl .turns").click()
    lab.locator(".gl-chip", has_text="was not cleared").wait_for()
    lab.get_by_role("button", name="Reset").click()
    assert lab.locator("pre.gl .turns").get_attribute("aria-pressed") == "true"
    answer_all(page)
    page.get_by_role("link", name="See it").click()
    lab.locator("pre.gl .turns[aria-pressed=false]").wait_for()
    lab.get_by_role("button", name="Play").click()
    lab.locator(".gl-chip", has_text="was not cleared").wait_for()
    assert page.locator(".map li").count() == len(LESSONS)


@pytest.mark.parametrize("name", SLIDES)
def test_the_slides_go_on_and_fit_a_projector(name: str, site: Path, visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    page = visit.open(site / "slides" / f"{name}.html")
    page.locator("output").wait_for()
    count = int(page.locator("output").inner_text().split("/")[1])
    too_high = []
    for number in range(1, count + 1):
        assert page.locator("output").inner_text() == f"{number} / {count}"
        if (bet := page.locator(".gl-bet:visible:not([data-settled])")).count():
            bet.locator("li button").first.click()
        assert page.locator("[data-slide]:visible").count() > 0
        page.wait_for_function(RECORDINGS_LOADED)
        next_frames(page)
        if page.evaluate(
            "() => { const m = document.querySelector('main'); return m.scrollHeight > m.clientHeight + 2; }"
        ):
            too_high.append(number)
        page.keyboard.press("PageDown")
    assert too_high == []


@pytest.mark.parametrize("name", SLIDES)
def test_slides_skip_what_is_covered_and_caption_labs(name: str, site: Path, visit: Visit) -> None:
    page = visit.open(site / "slides" / f"{name}.html")
    shown, previous = 0, ""
    while (position := page.locator("output").inner_text()) != previous:
        previous, shown = position, shown + 1
        assert len(page.locator("main").inner_text().strip()) > 20, previous
        if page.locator(".wide-cell:visible").count():
            assert "What to see" in page.locator(".lab-caption:visible").inner_text()
        page.keyboard.press("PageDown")
    assert 3 < shown < int(previous.split("/")[1])
    page.goto(page.url.split("#")[0] + f"#{int(page.locator('.gl-bet-hides').first.get_attribute('data-slide')) + 1}")
    assert page.locator(".gl-bet:visible").count() == 1, "an address of a covered slide leads to its bet"


def test_nothing_jumps_when_a_lab_begins_to_play(site: Path, visit: Visit) -> None:
    page = visit.open(site / f"{RECORDED[0]}.html")
    for recording in reversed(
        page.locator(".gl-recording").all()
    ):  # those below are loaded, too, and change their height
        if recording.evaluate("element => element.checkVisibility() && !element.closest('.gl-bet-hides')"):
            recording.scroll_into_view_if_needed()
            page.wait_for_function("element => 'live' in element.dataset", arg=recording.element_handle())
    tops = """() => [...document.querySelectorAll('.cells > .jp-Cell, main h2, .gl-recording')]
      .filter((each) => each.checkVisibility()).map((each) => each.getBoundingClientRect().top + scrollY)"""
    before = page.evaluate(tops)
    recording.get_by_role("button", name="Play").click()
    page.locator("body.gl-playing").wait_for()
    next_frames(page, 10)
    assert page.evaluate(tops) == before


def test_other_pages_open_without_a_fault(site: Path, visit: Visit) -> None:
    others = [path for path in sorted(site.glob("*.html")) if path.stem not in RECORDED]
    assert len(others) > 12
    for path in others:
        page = visit.open(path)
        assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0, path.name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_violation(theme: Any, site: Path, driver: Any) -> None:
    names = [path.stem for path in site.glob("*.html")] if ALL else AXE_PAGES[theme]
    visit = Visit(driver, viewport={"width": 390, "height": 844}, color_scheme=theme)
    serious = {}
    for name in names:
        page = visit.open(site / f"{name}.html")
        next_frames(page)
        if bad := [each for each in violations(page) if re.search(r"\((serious|critical)\)", each)]:
            serious[name] = bad
    visit.context.close()
    assert serious == {}


class _Text(HTMLParser):
    """The text of a page before any button is pressed: without the parts covered by questions."""

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


def test_no_page_shows_an_answer_before_the_choice(site: Path) -> None:
    secrets = {}
    for name in question_names():
        question = find_question(name)
        for answer in (question.why, *(option.remark for option in question.options if option.remark)):
            secrets[inline_html(answer)] = (_plain(answer.replace("`", "")), name)
    assert len(secrets) == sum(len(find_question(name).options) for name in question_names())  # a why, and remarks
    lessons = [path for path in site.glob("*.html") if path.stem != "answers"]
    for path in [*lessons, *site.glob("slides/*.html")]:
        whole = path.read_text(encoding="utf-8")
        parser = _Text()
        parser.feed(whole)
        visible = _plain("".join(parser.text))
        assert [name for as_html, (answer, name) in secrets.items() if answer in visible or as_html in whole] == [], (
            path.name
        )


class _Code(HTMLParser):
    """The text of each code element: blocks with ``within="pre"``, all code with ``within="code"``."""

    def __init__(self, within: str, text: str) -> None:
        super().__init__()
        self.within, self.is_open = within, False
        self.blocks: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == self.within:
            self.is_open = True
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        self.is_open = self.is_open and tag != self.within

    def handle_data(self, data: str) -> None:
        if self.is_open:
            self.blocks[-1] += data


def test_every_code_line_on_the_site_equals_its_source(site: Path) -> None:
    sheet = _Code("code", cheat_sheet().html).blocks
    assert any(each.startswith("        ") for each in sheet)
    assert _Code("code", (site / "cheat_sheet.html").read_text(encoding="utf-8")).blocks == sheet
    for path in (ROOT / "notebooks" / f"{name}.ipynb" for name in LESSONS):
        cells = read_notebook(path).cells
        outputs = [
            each.data.get("text/html", "") for cell in cells for each in cell.get("outputs", ()) if "data" in each
        ]
        inline = {text for each in outputs for text in _Code("code", each).blocks}
        sources = {cell.source.strip() for cell in cells if cell.cell_type == "code"}
        fences = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
        fenced = {text.strip() for cell in cells for text in fences.findall(cell.source)}
        for page in (site / f"{path.stem}.html", site / "slides" / f"{path.stem}.html"):
            text = page.read_text(encoding="utf-8")
            blocks = re.findall(r'<div class="highlight[^"]*">(.*?</pre>)', text, re.DOTALL)
            shown = [_Code("pre", block).blocks[0].strip() for block in blocks]
            assert [each for each in shown if each not in sources | fenced] == [], page.name
            indented = [each for each in _Code("code", text).blocks if each.startswith("  ")]
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
            sentence = _plain(element.get_text())
            assert not TELLS_TO_RUN.search(sentence), f"{page.name}: {sentence[:200]}"


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
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.goto(f"http://127.0.0.1:{port[1]}/index.html")
        page.locator("header input").fill("half-period")
        page.keyboard.press("Enter")
        page.locator("#results li").first.wait_for()
        assert "03" in page.locator("#results li").first.inner_text()
        page.goto(f"http://127.0.0.1:{port[1]}/search.html?q=why+does+the+loss+swing")
        page.locator("#results li").nth(3).wait_for()
        results = page.locator("#results")
        assert results.inner_text().startswith("03")
        assert "\u00b6" not in results.inner_text()
        assert {each.lower() for each in results.locator("mark").all_inner_texts()} & {"the", "does", "why"} == set()
        page.goto(f"http://127.0.0.1:{port[1]}/search.html?q=%22It+rises+and+swings%22")
        page.locator("#status").wait_for()
        assert problems == []
        page.close()
    finally:
        server.kill()
        server.wait()


def test_recordings_are_small_and_each_is_on_a_page(site: Path) -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in site.glob("*.html"))
    files = sorted((site / "replays").glob("*.js"))
    assert len(files) > (30 if ALL else 3)
    for path in files:
        assert wire_size(path) <= MAX_REPLAY_BYTES
        assert f'data-src="replays/{path.name}"' in pages
