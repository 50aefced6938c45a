"""The parts of the site's build: the cells to run, lessons, slides, pages, and refused arguments."""

from __future__ import annotations

import base64
import copy
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import torch
from gradlab_site import build
from gradlab_site.build import SiteAddress, build_site
from gradlab_site.check import problems_of
from gradlab_site.documents import DOCUMENTS, document_html, github_anchor, public_names, verdict_table
from gradlab_site.lessons import Cell, Lesson, read_lesson
from gradlab_site.notebook_html import formula_html, markdown_html, read_notebook
from gradlab_site.pages import PageWriter, html_soup
from gradlab_site.recordings import live_cells, record_notebook, replay_settings
from gradlab_site.slices import needed_cells
from gradlab_site.slides import opening_note, slide_cells

import gradlab
from gradlab.__main__ import main
from gradlab.course.instruments import two_ranks_numbers
from gradlab.course.processes import LaunchResult
from gradlab.widgets import find_question, question_names

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "site"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize(
    ("cells", "wanted", "needed"),
    [
        (["import torch", "a = 1", "b = a", "c = 3", "b"], 4, [0, 1, 2, 4]),
        (["lab = 1", "other = 2", "lab.run(3)", "lab"], 3, [0, 2, 3]),
        (["def f():\n    return g()", "def g():\n    return 1", "f()"], 2, [0, 1, 2]),
        (["x = 1", "%%doctor\nx", "torch.manual_seed(0)", "4"], 3, [2, 3]),
        (["x = 1", "x += 1", "x", "x = 5"], 2, [0, 1, 2]),
    ],
    ids=["names", "methods", "functions", "magic and seeds", "what comes later does not count"],
)
def test_the_cells_that_a_lab_needs(cells: list[str], wanted: int, needed: list[int]) -> None:
    assert needed_cells(cells, [wanted]) == needed


def test_the_chosen_cells_define_every_name_that_they_read(tmp_path: Path) -> None:
    """The chosen cells of a notebook, as one program, read no undefined name."""
    for path in NOTEBOOKS:
        notebook = read_notebook(path)
        code = [cell.source if cell.cell_type == "code" else "" for cell in notebook.cells]
        chosen = needed_cells(code, live_cells(notebook))
        (tmp_path / f"{path.stem}.py").write_text("\n".join(code[index] for index in chosen), encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_a_recording_equals_the_stored_notebook() -> None:
    path = ROOT / "notebooks" / "02_backward_adds.ipynb"
    stored = read_notebook(path)
    replays = record_notebook(path, {})
    torch.set_num_threads(1)
    assert [replay.name for _, replay in replays] == ["02-1", "02-2", "02-3"]
    for index, replay in replays:
        (output,) = [each for each in stored.cells[index].outputs if "image/png" in each.get("data", {})]
        starts_later = "stored_after" in stored.cells[index].metadata.get(
            "gradlab", {}
        )  # the recording starts before these lines
        assert starts_later or output.data["text/plain"].startswith(replay.description)
        assert re.fullmatch(rf'gradlabRecording\("{replay.name}", "[\w+/=]+"\);\n', replay.script)


def test_a_notebook_whose_processes_do_not_start_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the page would show the failure instead of the picture."""
    live = {"data": {}, "metadata": {"image/png": {"live": True}}, "output_type": "display_data"}
    cells = [("from gradlab.course import two_ranks", []), ("two_ranks()", [live])]
    stored = [{"cell_type": "code", "source": [text], "outputs": shown, "metadata": {}} for text, shown in cells]
    (path := tmp_path / "11_ranks.ipynb").write_text(json.dumps({"cells": stored}))
    monkeypatch.setattr(two_ranks_numbers, "launch", lambda *_, **__: LaunchResult((), "Not done after 60 seconds."))
    two_ranks_numbers._results.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"11_ranks.ipynb, cell 1: RuntimeError: Not done after 60 seconds"):
            record_notebook(path, {})
    finally:
        two_ranks_numbers._results.cache_clear()


def test_each_setting_belongs_to_a_recording() -> None:
    names = {
        f"{path.stem[:2]}-{number}" for path in NOTEBOOKS for number, _ in enumerate(live_cells(read_notebook(path)), 1)
    }
    assert set(replay_settings(SITE)) <= {*names, "home"}


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    return read_lesson(ROOT / "notebooks" / "03_forgetting_zero_grad.ipynb", SITE / "templates" / "cells.html.j2", {})


def test_a_lesson_has_all_that_its_notebook_has(lesson: Lesson) -> None:
    source = read_notebook(ROOT / "notebooks" / "03_forgetting_zero_grad.ipynb")
    headings = [line for cell in source.cells for line in re.findall(r"^### (.*)$", cell.source, re.MULTILINE)]
    titles = [section.heading for section in (*lesson.deeper[1:], *lesson.exercises[1:])]
    assert titles == [heading.strip() for heading in headings]
    assert [title for _, title in lesson.core_headings][-1] == "Recap"
    whole = "".join(str(cell.element) for cell in all_cells(lesson))
    assert whole.count('class="gl-bet"') == sum("predict(" in cell.source for cell in source.cells)  # and its import
    assert "Not attempted" not in whole


def all_cells(lesson: Lesson) -> list[Cell]:
    sections = (*lesson.deeper, *lesson.exercises, *lesson.sources)
    return [*lesson.set_up, *lesson.core, *(cell for section in sections for cell in section.cells)]


def test_what_follows_a_bet_is_covered_up_to_the_next_heading(lesson: Lesson) -> None:
    covered = False
    bets = 0
    for cell in lesson.core:
        if cell.kind == "bet":
            covered, bets = True, bets + 1
        else:
            covered = covered and not cell.level
            assert ("gl-bet-hides" in (cell.element.get("class") or "")) == covered, cell.element.get_text()[:60]
    assert bets > 1


def test_slides_hold_every_word_of_the_core_once(lesson: Lesson) -> None:
    parts = slide_cells(lesson, "../03.html")
    cells = [cell for cell in parts if cell.name != "aside"]
    texts = [
        " ".join("".join(str(each.get_text()) for each in part).split())
        for part in ([cell.element for cell in lesson.core], cells)
    ]
    assert texts[0].replace(" ", "") == texts[1].replace(" ", "")
    numbers = [int(str(cell["data-slide"])) for cell in cells]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, max(numbers) + 1))
    assert not [link for cell in cells for link in cell.find_all("a", href=re.compile("^#"))]


def note_text(note: Any) -> str:
    """Decode a note."""
    return html_soup(base64.b64decode(note["data-note"]).decode()).get_text()


def test_a_speaker_has_notes_to_each_bet_and_the_opening(lesson: Lesson) -> None:
    cells = slide_cells(lesson, "../03.html")
    bets = [index for index, cell in enumerate(cells) if cell.find(class_="gl-bet")]
    rights = {question.options[question.answer].text for question in map(find_question, question_names())}
    assert len(bets) > 1
    for index in bets:
        assert cells[index + 1].name == "aside"
        assert cells[index + 1]["data-slide"] == cells[index]["data-slide"]
        note = note_text(cells[index + 1])
        assert any(f"\u2713 {right.replace('`', '')}." in note for right in rights)
    teachers = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    for number in range(14):
        opening = note_text(opening_note(teachers, f"{number:02}"))
        assert all(word in opening for word in ("Ask: ", "They stumble: ", "What helps: ", "At the bet ", "Say: ")), (
            number
        )


def test_no_slide_is_code_alone(lesson: Lesson) -> None:
    """Code is shown on demand, so each slide also has a text, a picture, a bet or a task."""
    texts: dict[str, str] = {}
    for cell in slide_cells(lesson, "../03.html"):
        visible = copy.copy(cell)
        for code in visible.find_all(class_="slide-code"):
            code.decompose()
        number = str(cell["data-slide"])
        texts[number] = texts.get(number, "") + visible.get_text().strip() + "picture" * len(visible.find_all("img"))
    assert all(len(text) > 6 for text in texts.values()), texts


def test_a_page_keeps_nothing_that_a_strict_policy_refuses(tmp_path: Path) -> None:
    png = (ROOT / "notebooks" / "images" / "lab.png").read_bytes()
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "x.j2").write_text("{{ content | safe }}")
    writer = PageWriter(tmp_path / "out", tmp_path / "t", {})
    content = (
        '<p class="a" style="color:red">x</p><p style="color:red">y</p><style>b {}</style><script>alert(1)</script>'
        f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}" alt="z"><div data-src="replays/1.js"></div>'
        '<a href="gone.md">gone</a> <a href="there.md">there</a>'
    )
    writer.write("sub/x.html", "x.j2", lambda link: {"there.md": "../there.html"}.get(link), title="", content=content)
    page = html_soup((tmp_path / "out" / "sub" / "x.html").read_text())
    assert not page.select("[style], style, script")
    first, second = page.find_all("p")
    assert first["class"] == ["a", "style-0"]
    assert second["class"] == ["style-0"]
    assert ".style-0 { color:red }" in writer.styles()
    assert "b {}" in writer.styles()
    image = page.find("img")
    assert image is not None
    assert (tmp_path / "out" / "sub" / str(image["src"])).resolve().read_bytes() == png
    assert image["loading"] == "lazy"
    assert [link["href"] for link in page.find_all("a")] == ["../there.html"]
    assert "gone" in page.get_text()
    recording = page.find("div")
    assert recording is not None
    assert recording["data-src"] == "../replays/1.js"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ('<a href="none.html">x</a>', "leads nowhere"),
        ('<a href="#none">x</a>', "leads to no element there"),
        ('<img src="https://example.org/x.png">', "the page loads https://example.org/x.png"),
        ('<p style="color:red">', "has an inline style"),
        ('<p onclick="go()">', "has an inline event handler"),
        ("<script>go()</script>", "the page has an inline script"),
    ],
)
def test_the_check_finds_each_fault(page: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text(page)
    (problem,) = problems_of(tmp_path)
    assert message in problem


def test_the_check_finds_what_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "replays").mkdir()
    (tmp_path / "replays" / "1.js").write_bytes(torch.randint(0, 256, (600_000,), dtype=torch.uint8).numpy().tobytes())
    (tmp_path / "x.html").write_text('<img src="x.png">')
    (tmp_path / "x.png").write_bytes(bytes(3_100_000))
    assert len(problems_of(tmp_path)) == 2


def formulas(path: Path) -> list[str]:
    """Return the formulas in a notebook's Markdown, without code."""
    texts = [cell.source for cell in read_notebook(path).cells if cell.cell_type == "markdown"]
    text = re.sub(r"```.*?```|`[^`]*`", "", "\n\n".join(texts), flags=re.DOTALL)
    return [block or inline for block, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$]+)\$", text, re.DOTALL)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_formula_is_mathml_without_a_command_left(path: Path) -> None:
    for formula in formulas(path):
        tree = ElementTree.fromstring(formula_html(formula))
        assert tree.tag == "{http://www.w3.org/1998/Math/MathML}math"
        assert not re.search(r"[\\$_^{}]", "".join(tree.itertext()).replace("^", "", formula.count(r"\hat")))


def test_a_formula_keeps_its_order_and_an_unknown_one_its_text() -> None:
    tree = ElementTree.fromstring(formula_html(r"\hat m = \frac{m}{1-\beta_1^t}"))
    assert "".join(tree.itertext()) == "m^=m1\N{MINUS SIGN}\N{GREEK SMALL LETTER BETA}1t"
    assert formula_html(r"a < \nonsense{b}") == r"<code>$a &lt; \nonsense{b}$</code>"
    assert "<math" in markdown_html("is $x_1$ here", Path())


def test_documents_keep_the_anchors_of_github() -> None:
    assert github_anchor("What to ask, and where they stumble") == "what-to-ask-and-where-they-stumble"
    html = document_html(ROOT, DOCUMENTS[0])
    assert 'id="time-plans"' in html
    assert "mermaid" not in document_html(ROOT, next(each for each in DOCUMENTS if each.file == "ARCHITECTURE.md"))


def test_every_public_name_is_in_the_reference() -> None:
    names = {each.name: each for each in public_names()}
    assert {name for name in dir(gradlab) if not name.startswith("_") and name in gradlab.__all__} == set(names)
    assert "updates" in next(each.signature for each in names["Lab"].members if each.name == "record")


def test_the_fact_check_has_every_claim_on_every_version() -> None:
    versions, rows = verdict_table(SITE / "factcheck")
    assert len(versions) >= 3
    assert len(rows) == 52
    stored: dict[str, Any] = json.loads((SITE / "factcheck" / f"{versions[0]}.json").read_text())
    assert {row.code: row.by_version[0] for row in rows} == {each["code"]: each["verdict"] for each in stored["claims"]}


def test_the_command_refuses_what_it_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    for arguments, message in (
        ([str(tmp_path)], "which contains other files"),
        ([str(tmp_path / "mine.txt")], "OUT must be a folder"),
        ([str(tmp_path / "mine.txt" / "site")], "OUT cannot be written: "),
        ([str(tmp_path / "x"), "--address", "https://example.org/a"], "--address must be https://github.com/YOU/NAME"),
        ([str(tmp_path / "x"), "--only", "14"], "--only must be one of 00, 01, "),
    ):
        assert main(["site", *arguments]) == 2
        errors = capsys.readouterr().err
        assert message in errors
        assert errors.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_one_lesson_comes_with_its_worksheet_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "record_all", lambda notebooks, *_, **__: [(path, []) for path in notebooks])
    assert build.build_site(ROOT, tmp_path / "pages", build.SiteAddress(), only="13") == []
    pages = {path.relative_to(tmp_path / "pages").as_posix() for path in (tmp_path / "pages").rglob("*.html")}
    lesson = "13_cheat_sheet.html"
    assert pages == {"index.html", lesson, f"slides/{lesson}", "worksheets.html", "answers.html"}
    index, *sheets = (
        (tmp_path / "pages" / name).read_text() for name in ("index.html", "worksheets.html", "answers.html")
    )
    assert all(f'href="{page}"' in index for page in pages - {"index.html"})
    assert ["Exit ticket 13" in text and "Exit ticket 12" not in text for text in sheets] == [True, True]


def test_an_address_gives_links_to_hubs_and_none_gives_none() -> None:
    assert SiteAddress().hubs("00.ipynb") == {}
    assert SiteAddress().file("LICENSE") is None
    hubs = SiteAddress("https://github.com/YOU/NAME", "v1").hubs("00.ipynb")
    assert all("/YOU/NAME/" in address and "v1" in address and "00.ipynb" in address for address in hubs.values())
    with pytest.raises(ValueError, match="OUT must be a folder"):
        build_site(ROOT, ROOT / "LICENSE", SiteAddress())
