"""A notebook as parts of a page: its core, deeper sections and exercises, each a list of cells as HTML."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bs4 import Tag

from .notebook_html import notebook_exporter, read_notebook
from .pages import add_class, heading_words, html_soup
from .recordings import Replay

_QUESTION = re.compile(r'\bpredict\("([^"]+)"\)')
_EXERCISE = re.compile(r'\bexercise\("([^"]+)"\)')
_HEADING = re.compile(r"^(#{1,3}) +(.+?)\s*$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_OF_NOTEBOOKS = "gradlab-in-notebook"
"""The class of words that are for a notebook only, such as "Run the next cell": a page leaves them out."""
_OWN = ("Time", "Contents")
"""How the paragraphs below a title begin that a page of the site writes itself."""


@dataclass
class Cell:
    """A cell: as HTML, with its heading, if its text begins with one."""

    element: Tag
    kind: str
    """``"text"``, ``"code"``, ``"live"``, ``"bet"``, ``"spec"`` of an exercise, or its ``"stub"``."""
    level: int = 0
    heading: str = ""


@dataclass
class Section:
    """A heading and the cells below it."""

    heading: str
    anchor: str
    cells: list[Cell]

    @property
    def html(self) -> str:
        """The cells."""
        return cells_html(self.cells)


@dataclass
class Lesson:
    """A notebook for the site."""

    number: str
    title: str
    lead: str
    """What stands below the title, as HTML."""
    set_up: list[Cell]
    """What stands above the first heading or lab: imports."""
    core: list[Cell]
    deeper: list[Section]
    exercises: list[Section]
    sources: list[Section]
    """Where the claims come from, and whatever else follows the exercises."""

    @property
    def lead_text(self) -> str:
        """The first paragraph below the title, as text."""
        first = html_soup(self.lead).find("p")
        return first.get_text() if first else ""

    @property
    def core_headings(self) -> list[tuple[str, str]]:
        """Anchor and words of each heading of the core, also of one in the middle of a cell."""
        texts = [cell.element for cell in self.core if cell.kind == "text"]
        return [(str(each["id"]), heading_words(copy.copy(each))) for text in texts for each in text.find_all("h2")]


def cells_html(cells: Sequence[Cell]) -> str:
    """Return cells as HTML."""
    return "\n".join(str(cell.element) for cell in cells)


def anchor_of(heading: str) -> str:
    """Return the id of a heading, as Jupyter makes it."""
    return re.sub(r"[`*$]", "", heading).strip().replace(" ", "-")


def read_lesson(path: Path, template: Path, replays: Mapping[int, Replay]) -> Lesson:
    """Read a stored notebook; ``replays`` are by the index of the cell. ``template`` writes its cells."""
    notebook = read_notebook(path)
    for at, replay in replays.items():
        for output in notebook.cells[at].outputs:
            if output.get("metadata", {}).get("image/png", {}).get("live"):
                about = output.metadata["image/png"]
                about.pop("live")
                about["recording"] = replay.place
    resources = {"metadata": {"name": path.stem, "path": str(path.parent)}}
    body, _ = notebook_exporter(path.parent, template).from_notebook_node(notebook, resources)
    elements = [each for each in html_soup(body).find_all(class_="jp-Cell") if not each.find_parent(class_="jp-Cell")]
    cells = [_cell(cell, element) for cell, element in zip(notebook.cells, elements, strict=True)]
    _cover(cells)
    return _lesson(path.name.partition("_")[0], cells)


def _cell(cell: Any, element: Tag) -> Cell:
    """Return a cell with its kind; what makes no sense without a kernel goes."""
    element.attrs.pop("id", None)
    if cell.cell_type == "markdown":
        for words in element.find_all(class_=_OF_NOTEBOOKS):
            around = words.parent
            words.decompose()
            if around is not None and not around.get_text(strip=True):
                around.decompose()
        found = _HEADING.match(_FENCE.sub("", cell.source).lstrip())
        return Cell(element, "text", len(found[1]), _plain(found[2])) if found else Cell(element, "text")
    kind = "code"
    if _QUESTION.search(cell.source):
        kind = "bet"
    elif re.search(r"^\w+(\(\"\w+\"\))?\.check\(", cell.source, re.MULTILINE) and not _is_reveal(cell):
        kind = "stub"
    elif _EXERCISE.search(cell.source) and not _is_reveal(cell):
        kind = "spec"
    elif element.find(class_="gl-recording"):
        kind = "live"
    gone = {"bet": "jp-Cell-inputWrapper", "spec": "jp-Cell-inputWrapper", "stub": "jp-Cell-outputWrapper"}
    for part in element.find_all(class_=gone.get(kind, "nothing")):
        part.decompose()
    if kind == "live":
        add_class(element, "wide-cell")
        _fold_code(element, is_name=cell.source.isidentifier())
    return Cell(element, kind)


def _is_reveal(cell: Any) -> bool:
    """Return whether a check shows after a bet what the given loop does: a picture and a report, which stay."""
    texts = [output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return bool(cell.metadata.get("jupyter", {}).get("outputs_hidden")) and any(
        "The loss goes" in each for each in texts
    )


def _fold_code(element: Tag, is_name: bool) -> None:
    """Fold the code of a lab: here it is not what the reader works with. One that only names the lab goes."""
    code = element.find(class_="jp-InputArea-editor")
    if is_name:
        for wrapper in element.find_all(class_="jp-Cell-inputWrapper"):
            wrapper.decompose()
    elif isinstance(code, Tag) and code.find("details") is None:
        folded = html_soup('<details class="code"><summary>Code</summary></details>').find("details")
        assert isinstance(folded, Tag)
        for part in [*code.contents]:
            folded.append(part.extract())
        code.append(folded)


def _plain(markdown: str) -> str:
    return re.sub(r"[`*$]", "", markdown)


def _cover(cells: Sequence[Cell]) -> None:
    """Cover what follows a question from the start: a page is read before its scripts have come (outcome.js)."""
    covered = False
    for cell in cells:
        if cell.kind == "bet":
            covered = True
        elif cell.level:
            covered = False
        elif covered:
            add_class(cell.element, "gl-bet-follows", "gl-bet-hides")
            cell.element["data-pagefind-ignore"] = ""  # the search would show it
            covered = not cell.element.find(["h1", "h2", "h3"])


def _lesson(number: str, cells: list[Cell]) -> Lesson:
    """Sort cells into parts by their headings."""
    parts: dict[str, list[Cell]] = {"core": [], "deeper": [], "exercises": [], "sources": []}
    part = "core"
    for cell in cells:
        if cell.level == 2:
            heading = cell.heading.lower()
            if heading.startswith("deeper"):
                part = "deeper"
            elif heading.startswith("exercise"):
                part = "exercises"
            elif part != "core":
                part = "sources"
        parts[part].append(cell)
    title, lead = _title(parts["core"][0])
    begins = next(at for at, cell in enumerate(parts["core"]) if cell.level == 2 or cell.kind == "live")
    return Lesson(
        number,
        title,
        lead,
        parts["core"][1:begins],
        parts["core"][begins:],
        list(_sections(parts["deeper"])),
        list(_sections(parts["exercises"])),
        list(_sections(parts["sources"], level=2)),
    )


def _title(first: Cell) -> tuple[str, str]:
    """Return the heading of the notebook and what stands below it as HTML; the links to hubs are the page's own."""
    element = first.element
    heading = element.find("h1")
    assert heading is not None
    heading.extract()
    body = element.find(class_="jp-RenderedMarkdown") or element
    for paragraph in body.find_all("p"):
        if paragraph.get_text().startswith(_OWN):
            paragraph.extract()
    return first.heading, body.decode_contents()


def _sections(cells: Sequence[Cell], level: int = 3) -> Iterator[Section]:
    """Yield a section for each heading of this level; its words are left to the page. What stands above is its own."""
    section: Section | None = None
    for cell in cells:
        if cell.level == level or (section is None and cell.level):
            if section:
                yield section
            section = Section(cell.heading, anchor_of(cell.heading), [cell])
            found = cell.element.find(["h2", "h3"])
            if found is not None and cell.level == level:
                found.extract()
            rest = cell.element.find("h3")
            if cell.level < level and rest is not None:  # "## Exercises", with the first of them in the same cell
                first = copy.copy(cell.element)
                _cut_after(cell.element, rest)
                yield section
                heading = _cut_before(first, first.find("h3"))
                section = Section(heading, anchor_of(heading), [Cell(first, "text", 3, heading)])
        elif section:
            section.cells.append(cell)
    if section:
        yield section


def _cut_after(element: Tag, at: Tag) -> None:
    for sibling in [*at.find_next_siblings()]:
        sibling.extract()
    at.extract()


def _cut_before(element: Tag, at: Any) -> str:
    """Take away a heading and what stands before it; return its words."""
    for sibling in [*at.find_previous_siblings()]:
        sibling.extract()
    words = heading_words(at)
    at.extract()
    return words
