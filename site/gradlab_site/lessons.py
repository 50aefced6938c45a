"""A notebook as the parts of a page: the core, the deeper sections and the exercises, with their cells as HTML."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bs4 import Tag

from .notebook_html import notebook_exporter, read_notebook
from .pages import add_class, heading_text, html_soup
from .recordings import Replay

_QUESTION = re.compile(r'\bpredict\("([^"]+)"\)')
_EXERCISE = re.compile(r'\bexercise\("([^"]+)"\)')
_HEADING = re.compile(r"^(#{1,3}) +(.+?)\s*$", re.MULTILINE)
_MARKUP = re.compile(r"[`*$]")  # Markdown characters, which are removed from headings
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_NOTEBOOK_ONLY = "gradlab-in-notebook"  # class of phrases such as "Run the next cell", which are dropped from the page
_REPLACED_PARAGRAPHS = ("Time", "Contents")  # first words of paragraphs that the page replaces with other information


@dataclass
class Cell:
    """A cell as HTML; ``level`` and ``heading`` are 0 and "" unless its text begins with a heading."""

    element: Tag
    kind: str
    """``"text"``, ``"code"``, ``"live"`` (a lab), ``"bet"`` (a question), or an exercise's ``"spec"`` or ``"stub"``."""
    level: int = 0
    heading: str = ""


@dataclass
class Section:
    """A heading and the cells below it."""

    heading: str
    anchor: str
    cells: list[Cell]


@dataclass
class Lesson:
    """The parts of a notebook's page: title, set-up, core, deeper sections, exercises and sources."""

    number: str
    title: str
    lead: str  # the text below the title, as HTML
    set_up: list[Cell]  # the cells between the title and the first section heading or lab, such as imports
    core: list[Cell]
    deeper: list[Section]
    exercises: list[Section]
    sources: list[Section]  # all other sections after the core, such as the sources

    @property
    def lead_text(self) -> str:
        """The first paragraph below the title as plain text, or "" if there is none."""
        first = html_soup(self.lead).find("p")
        return first.get_text() if first else ""

    @property
    def core_headings(self) -> list[tuple[str, str]]:
        """The anchor and text of each second-level heading of the core, including headings in the middle of a cell."""
        texts = [cell.element for cell in self.core if cell.kind == "text"]
        return [(str(each["id"]), heading_text(copy.copy(each))) for text in texts for each in text.find_all("h2")]


def cells_html(cells: Sequence[Cell]) -> str:
    """Return the HTML of all ``cells``, in order, as one string."""
    return "\n".join(str(cell.element) for cell in cells)


def anchor_of(heading: str) -> str:
    """Return the id that Jupyter gives to a heading."""
    return _MARKUP.sub("", heading).strip().replace(" ", "-")


def read_lesson(path: Path, template: Path, replays: Mapping[int, Replay]) -> Lesson:
    """Return the notebook at ``path``, rendered with ``template``; ``replays`` maps cell indices to recordings."""
    notebook = read_notebook(path)
    for index, replay in replays.items():
        for output in notebook.cells[index].outputs:
            if output.get("metadata", {}).get("image/png", {}).get("live"):
                metadata = output.metadata["image/png"]
                metadata.pop("live")
                metadata["recording"] = replay.attributes
    resources = {"metadata": {"name": path.stem, "path": str(path.parent)}}
    body, _ = notebook_exporter(path.parent, template).from_notebook_node(notebook, resources)
    elements = [each for each in html_soup(body).find_all(class_="jp-Cell") if not each.find_parent(class_="jp-Cell")]
    cells = [_cell(cell, element) for cell, element in zip(notebook.cells, elements, strict=True)]
    _cover(cells)
    return _lesson(path.name.partition("_")[0], cells)


def _cell(cell: Any, element: Tag) -> Cell:
    """Return a Cell with its kind and heading, without the parts that are useful only in a notebook."""
    element.attrs.pop("id", None)
    if cell.cell_type == "markdown":
        for note in element.find_all(class_=_NOTEBOOK_ONLY):
            parent = note.parent
            note.decompose()
            if parent is not None and not parent.get_text(strip=True):
                parent.decompose()
        match = _HEADING.match(_FENCE.sub("", cell.source).lstrip())
        return Cell(element, "text", len(match[1]), _MARKUP.sub("", match[2])) if match else Cell(element, "text")
    kind = "code"
    if _QUESTION.search(cell.source):
        kind = "bet"
    elif re.search(r"^\w+(\(\"\w+\"\))?\.check\(", cell.source, re.MULTILINE) and not _is_reveal(cell):
        kind = "stub"
    elif _EXERCISE.search(cell.source) and not _is_reveal(cell):
        kind = "spec"
    elif element.find(class_="gl-recording"):
        kind = "live"
    dropped = {"bet": "jp-Cell-inputWrapper", "spec": "jp-Cell-inputWrapper", "stub": "jp-Cell-outputWrapper"}
    for part in element.find_all(class_=dropped.get(kind, "nothing")):
        part.decompose()
    if kind == "live":
        add_class(element, "wide-cell")
        _fold_code(element, is_name=cell.source.isidentifier())
    return Cell(element, kind)


def _is_reveal(cell: Any) -> bool:
    """Return whether a cell's hidden outputs show a loop's result after a bet; if so, the page keeps the outputs."""
    texts = "\n".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
    return bool(cell.metadata.get("jupyter", {}).get("outputs_hidden")) and "The loss goes" in texts


def _fold_code(element: Tag, is_name: bool) -> None:
    """Fold the code of a lab's cell, which readers of the page cannot change, or remove it if it is only a name."""
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


def _cover(cells: Sequence[Cell]) -> None:
    """Cover the cells after each question up to the next heading, since the page is shown before outcome.js loads."""
    covered = False
    for cell in cells:
        if cell.kind == "bet":
            covered = True
        elif cell.level:
            covered = False
        elif covered:
            add_class(cell.element, "gl-bet-follows", "gl-bet-hides")
            cell.element["data-pagefind-ignore"] = ""  # otherwise search results would reveal the outcome
            covered = not cell.element.find(["h1", "h2", "h3"])


def _lesson(number: str, cells: list[Cell]) -> Lesson:
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
    core = parts["core"]
    title, lead = _title(core[0])
    start = next(index for index, cell in enumerate(core) if cell.level == 2 or cell.kind == "live")
    deeper, exercises = list(_sections(parts["deeper"])), list(_sections(parts["exercises"]))
    sources = list(_sections(parts["sources"], level=2))
    return Lesson(number, title, lead, core[1:start], core[start:], deeper, exercises, sources)


def _title(first: Cell) -> tuple[str, str]:
    """Remove the title and ``_REPLACED_PARAGRAPHS`` from the first cell; return the title, and the rest as HTML."""
    element = first.element
    heading = element.find("h1")
    assert heading is not None
    heading.extract()
    body = element.find(class_="jp-RenderedMarkdown") or element
    for paragraph in body.find_all("p"):
        if paragraph.get_text().startswith(_REPLACED_PARAGRAPHS):
            paragraph.extract()
    return first.heading, body.decode_contents()


def _sections(cells: Sequence[Cell], level: int = 3) -> Iterator[Section]:
    """Yield the section of the first heading, and that of each heading of ``level``, without the heading itself."""
    section: Section | None = None
    for cell in cells:
        if cell.level == level or (section is None and cell.level):
            if section:
                yield section
            section = Section(cell.heading, anchor_of(cell.heading), [cell])
            title = cell.element.find(["h2", "h3"])
            if title is not None and cell.level == level:
                title.extract()
            subheading = cell.element.find("h3")
            if cell.level < level and subheading is not None:  # the cell has "## Exercises" and the first exercise
                first = copy.copy(cell.element)
                for part in [*subheading.find_next_siblings(), subheading]:
                    part.extract()
                yield section
                heading = _cut_before(first.find("h3"))
                section = Section(heading, anchor_of(heading), [Cell(first, "text", 3, heading)])
        elif section:
            section.cells.append(cell)
    if section:
        yield section


def _cut_before(heading: Any) -> str:
    """Remove a heading and its preceding siblings; return the heading's text."""
    for part in [*heading.find_previous_siblings(), heading]:
        part.extract()
    return heading_text(heading)
