"""Rules for all notebooks of the series: opening, set-up cell, length of cells, links, numbers, closing."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from reading import CLOSING, PARTS, builds_on, header, reading, total, visible_lines

from gradlab.course.series import series_notebooks

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EACH = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
COMPARED_CALLS = ("swing", "ring_of_orders", "peak", "loss_scale", "draw_graph", "head_to_tail", "update_strip")
SHEET = "13_cheat_sheet"  # a page to print, without questions
LINES = {"core": 8, "deeper": 12, "exercises": 14, "sources": 0}  # of a code cell
FILE_LINES = 20  # of a cell that writes a file
CORE, CORE_CELLS, CORES = 15, 25, 210  # minutes and cells of one core, and minutes of all fourteen
DEEPER = 20  # minutes
CELLS, WORDS, VISIBLE_LINES = 900, 24_000, 2_400  # of the series


def stored(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in cells]


def sources_of(path: Path, kind: str) -> list[str]:
    return [cell["source"] for cell in stored(path) if cell["cell_type"] == kind]


def headings(path: Path) -> list[str]:
    """Return the headings of level 2, in order."""
    return [line.strip() for text in sources_of(path, "markdown") for line in re.findall(r"^## (.*)", text, re.M)]


def opening(path: Path) -> str:
    """Return the cell with a notebook's aims, time and contents: the first; in 00 the last of the core."""
    of_00 = [cell["source"] for part, cell in parts(path) if part == "core" and cell["id"] == "about"]
    return of_00[0] if path == NOTEBOOKS[0] else stored(path)[0]["source"]


def test_notebook_00_opens_with_a_lab_that_plays() -> None:
    title, setup, lab = stored(NOTEBOOKS[0])[:3]
    assert title["source"].count("\n") == 2
    assert len(re.findall(r"[.!?](?=\s|$)", title["source"])) == 1, "one sentence"
    assert setup["id"] == "setup"
    assert "play=True" in lab["source"]


def test_there_are_fourteen() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"{number:02}" for number in range(14)]


@EACH
def test_it_opens_as_all_do(path: Path) -> None:
    number, first = path.stem.partition("_")[0], opening(path)
    assert re.match(rf"# {number} · \S", stored(path)[0]["source"])
    for word in ("**Afterwards you can**", "**Time**", "**Builds on**", "**Contents**"):
        assert word in first, word
    listed = re.findall(r"\[([^\]]+)\]\(#([^)]+)\)", first)
    assert listed == [(heading, heading.replace(" ", "-")) for heading in headings(path)]
    assert tuple(headings(path)[-len(CLOSING) :]) == CLOSING
    recap = next(cell["source"] for cell in stored(path) if cell["source"].startswith("## Recap"))
    assert len(re.findall(r"^- ", recap, re.M)) == 3


def parts(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return each cell with its part of the notebook: core, deeper, exercises, sources."""
    labelled, part = [], "core"
    for cell in stored(path):
        if cell["cell_type"] == "markdown":
            for heading in re.findall(r"^## (.+)$", cell["source"], re.M):
                part = PARTS.get(heading.strip(), part)
        labelled.append((part, cell))
    return labelled


@EACH
def test_its_minutes_are_those_of_the_rule(path: Path) -> None:
    """python tests/refresh_minutes.py writes them."""
    read = reading(path)
    assert header(read) in opening(path)
    assert read.core <= CORE
    assert read.deeper <= DEEPER
    row = next(
        line for line in prose_of(READMES[1]).splitlines() if line.startswith(f"| [{path.stem.replace('_', ' ', 1)}]")
    )
    assert f"| {read.core} + {read.deeper} + {read.exercises} |" in row


@EACH
def test_its_title_names_what_the_map_says_comes_before(path: Path) -> None:
    """python tests/refresh_minutes.py writes it."""
    entry = next(each for each in series_notebooks() if each.file == path.name)
    assert builds_on(entry) in opening(path)


@EACH
def test_a_core_is_short_and_has_work_for_the_hands(path: Path) -> None:
    core = [cell for part, cell in parts(path) if part == "core"]
    assert len(core) <= CORE_CELLS
    assert any(re.search(r"\bexercise\(", cell["source"]) for cell in core if cell["cell_type"] == "code")


def test_the_series_is_short() -> None:
    assert sum(len(stored(path)) for path in NOTEBOOKS) <= CELLS
    assert sum(reading(path).word_count for path in NOTEBOOKS) <= WORDS
    assert sum(map(visible_lines, (cell for path in NOTEBOOKS for cell in stored(path)))) <= VISIBLE_LINES


def test_the_cores_take_less_than_four_hours() -> None:
    read = [reading(path) for path in NOTEBOOKS]
    assert sum(each.core for each in read) <= CORES
    assert total(read) in prose_of(READMES[1])


@EACH
def test_what_is_deeper_is_folded_and_says_who_needs_it(path: Path) -> None:
    deeper = [cell for part, cell in parts(path) if part == "deeper" and cell["cell_type"] == "markdown"]
    assert deeper[0]["source"].startswith("## Deeper\n")
    sections = [cell for cell in deeper if cell["source"].startswith("### ")]
    assert sections
    for cell in sections:
        assert re.fullmatch(r"### \S[^\n]*\n\n\*Read this if [^\n]+\*", cell["source"].strip()), cell["source"]
        assert cell["metadata"].get("jp-MarkdownHeadingCollapsed") is True, cell["source"]
    assert sum(cell["source"].count("\n### ") for cell in deeper) == 0, "a heading begins a cell"


@EACH
def test_the_set_up_cell_is_the_same_everywhere(path: Path) -> None:
    code = next(cell for cell in stored(path) if cell["cell_type"] == "code")
    first = sources_of(NOTEBOOKS[1], "code")[0]
    assert code["source"] == first or (path == NOTEBOOKS[0] and code["source"].startswith(first))
    assert code["id"] == "setup"
    assert code["metadata"]["jupyter"]["source_hidden"] is True, "it is no lesson: folded"
    assert code["outputs"] == []


@EACH
def test_it_asks_before_it_shows_and_its_answers_are_folded_away(path: Path) -> None:
    asking = [cell for cell in stored(path) if re.search(r"\bpredict\(\"", cell["source"])]
    assert len(asking) >= (0 if path.stem == SHEET else 3)
    for cell in asking:
        if cell["source"].startswith("predict("):
            assert cell["metadata"].get("jupyter", {}).get("source_hidden") is True
            assert cell["metadata"].get("cellView") == "form"


@EACH
def test_cells_are_short_and_end_in_no_silence(path: Path) -> None:
    for part, cell in parts(path):
        text = cell["source"]
        if cell["cell_type"] != "code" or "predict(" in text or cell["id"] == "setup":
            continue  # a question is prose
        lines = [
            line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "def mend_"))
        ]
        assert not text.startswith("%%writefile -a"), text
        whole_file = text.startswith("%%writefile ")
        limit = FILE_LINES + 1 if whole_file else LINES["exercises" if 'exercise("' in text else part]
        assert len(lines) <= limit, text


@EACH
def test_every_picture_says_what_to_see(path: Path) -> None:
    cells = stored(path)
    for index, cell in enumerate(cells):
        pictures = any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
        if pictures:
            text = "".join(cell["source"] for cell in cells[index + 1 : index + 3] if cell["cell_type"] == "markdown")
            assert "what to see" in text.lower(), cell["source"]


READMES = [ROOT / "README.md", ROOT / "notebooks" / "README.md"]


def prose_of(path: Path) -> str:
    return "\n\n".join(sources_of(path, "markdown")) if path.suffix == ".ipynb" else path.read_text(encoding="utf-8")


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as in JupyterLab and as on GitHub."""
    titles = re.findall(r"^#+ (.*)$", prose_of(path), re.M)
    github = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in titles}
    return {heading.strip().replace(" ", "-") for heading in titles} | github


@pytest.mark.parametrize("path", [*NOTEBOOKS, *READMES], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", "", prose_of(path), flags=re.S)
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^\]]+\]: (\S+)$", text, re.M)
    assert targets
    for target in targets:
        if re.match(r"\w+:", target):
            address = urlsplit(target)
            assert address.scheme == "https", target
            assert re.fullmatch(r"[\w-]+(\.[\w-]+)+", address.netloc), target
            assert not re.search(r"\s|[<>\"]", target), target
            continue
        name, _, anchor = target.partition("#")
        page = (path.parent / name).resolve() if name else path
        assert page.exists(), target
        if anchor:
            assert anchor in anchors(page), target
    used = {name.lower() for pair in re.findall(r"\]\[([^\]]*)\]|\]\[([^\]]+)\]", text) for name in pair if name}
    defined = {name.lower() for name in re.findall(r"^\[([^\]]+)\]: ", text, re.M)}
    assert used <= defined


NUMBER = re.compile(r"(?<![\w.,^_{/#-])-?\d[\d,]*(?:\.\d+)?(?![\w^_}]|[.,]\d)")
# Not prose: code, formulas, links, headings; names of notebooks, versions and buttons.
NOT_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|<[^>]+>|^#+ .*$|^\[[^\]]+\]: .*$"
    r"|\b[Nn]otebooks? \d\d\b|^\| \d\d \||\bPython 3\.\d+|\*\*\d+ updates?/s\*\*",
    re.S | re.M,
)
CITED = re.compile(r"\]\(https?://|\barXiv\b|\bdoi\b|\]\(\d\d_\w+\.ipynb")


def value_of(text: str) -> tuple[float, int]:
    """Return the value of a number and its count of decimal places."""
    plain = text.replace(",", "")
    return float(plain), len(plain.partition(".")[2])


def computed(path: Path) -> set[float]:
    """Return every number in the code cells, outputs and questions of a notebook."""
    questions = ROOT / "gradlab" / "widgets" / "questions" / f"{path.stem[:2]}.toml"
    texts = [questions.read_text(encoding="utf-8")] if questions.exists() else []
    return numbers_in("\n".join([*texts, *(output_text(cell) for cell in stored(path))]))


def output_text(cell: dict[str, Any]) -> str:
    """Return the source and outputs of a code cell as text, "" for other cells."""
    if cell["cell_type"] != "code":
        return ""
    texts = [cell["source"], *cell.get("metadata", {}).get("gradlab", {}).get("stored_after", [])]
    for output in cell["outputs"]:
        data = output.get("data", {})
        page = "".join(data.get("text/html", ""))  # its text; sizes and colours are no evidence
        texts.append(re.sub(r"<(style|script).*?</\1>|<[^>]+>", " ", page, flags=re.S))
        texts += ["".join(part) for part in (output.get("text", ""), data.get("text/plain", ""))]
    return "\n".join(texts)


def numbers_in(text: str) -> set[float]:
    """Return every number in a text."""
    numbers = set()
    for number in re.findall(r"\d[\d,_]*(?:\.\d+)?(?:e[+-]?\d+)?", text):
        # 60 in (60,120), which reads as one number, and 405 in 405e9; but not 25 in 1.25.
        for part in {number.replace(",", ""), *number.split(","), number.partition("e")[0]}:
            with contextlib.suppress(ValueError):
                numbers.add(float(part))
    return numbers


def unfounded(path: Path) -> list[tuple[str, str]]:
    """Return the numbers in the prose that no cell computes and no source supports, with their sentences."""
    numbers, missing = computed(path), []
    for text in sources_of(path, "markdown")[1:]:
        if "**Time**" in text:
            continue  # the opening has minutes
        if re.match(r"## (Exercises|Where the claims come from)\b", text.strip()):
            text = re.sub(r"^### .*$", "", text, flags=re.M)
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*|] |\s*\d+\. )", text):
            if CITED.search(paragraph):
                continue
            prose = NOT_PROSE.sub(" ", re.sub(r"^\s*\d+\. ", "", paragraph))
            missing += [(number, " ".join(prose.split())) for number in unknown(prose, numbers)]
    return missing


def unknown(prose: str, numbers: set[float]) -> list[str]:
    """Return the numbers of a text that, rounded as written, are not among ``numbers``."""
    missing = []
    for number in NUMBER.findall(prose):
        wanted, places = value_of(number.lstrip("-"))
        scales = (1, 100) if re.search(rf"{re.escape(number)}\s*(%|percent)", prose) else (1,)
        if not any(round(value * scale, places) == wanted for value in numbers for scale in scales):
            missing.append(number)
    return missing


@EACH
def test_no_number_without_evidence(path: Path) -> None:
    assert unfounded(path) == []


CAPTION = re.compile(r"\*What to see.*?(?<=[.)?!])\*(?!\*)", re.S)


# On an axis of a lab, at the start of a curve; and in the picture of an exercise.
WRITTEN_IN_PICTURES: dict[str, set[float]] = {"00": {17226, 2.3}, "08": {65536, 0.03}}


def wrong_captions(path: Path) -> list[tuple[str, str]]:
    """Return the numbers in captions that are not in the cells since the heading above, or in their outputs."""
    wrong, above = [], ""
    for cell in stored(path):
        if cell["cell_type"] == "code":
            above += "\n" + output_text(cell)
            continue
        for part in re.split(r"^(?=#{1,3} )", cell["source"], flags=re.M):
            above = "" if part.startswith("#") else above
            for caption in CAPTION.findall(part):
                prose = NOT_PROSE.sub(" ", re.sub(r"\[[^\]]*\]\(https?:[^)]*\)", " ", caption))
                numbers = numbers_in(above) | WRITTEN_IN_PICTURES.get(path.stem[:2], set())
                wrong += [(number, prose) for number in unknown(prose, numbers) if not re.fullmatch(r"\d", number)]
    return wrong


@EACH
def test_the_numbers_of_captions_are_those_of_the_pictures(path: Path) -> None:
    assert wrong_captions(path) == []


@EACH
def test_stored_instruments_are_compared_when_they_run(path: Path) -> None:
    """nbval compares the texts of their pictures with the stored ones."""
    for cell in stored(path):
        last = cell["source"].strip().splitlines()[-1:]
        if (
            cell["cell_type"] == "code"
            and last
            and "gradlab" not in cell["metadata"]
            and re.match(rf"(?:{'|'.join(COMPARED_CALLS)})\(", last[0])
        ):
            assert "nbval-check-output" in cell["metadata"].get("tags", []), cell["source"]


def test_a_number_without_evidence_is_found(tmp_path: Path) -> None:
    output = {"text": ["0.9756\n"], "data": {"text/html": ["<p style='width:720px'>(60,120)</p>"]}}
    texts = (
        "# 00 · x",
        "It is 0.98, or 98%, of 40; 60. Not 0.97 nor 1,234 nor 9,756 nor 720.\n",
        "[They](https://example.org) saw 777, `f(3)`.",
    )
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "source": [text]} for text in texts]
    cells.insert(1, {"cell_type": "code", "source": ["print(40 / 41)"], "outputs": [output]})
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert [number for number, _ in unfounded(path)] == ["0.97", "1,234", "9,756", "720"]
