"""The core of a notebook as slides that fit a projector, with speaker's notes."""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Iterable, Iterator, Sequence

from bs4 import Tag

from gradlab.formatting import inline_html
from gradlab.widgets import find_question, question_names

from .lessons import Cell, Lesson
from .pages import add_class, html_soup

_PART_WORDS = 90  # maximum number of words in a part of a cell
_SLIDE_WORDS = 140  # maximum number of words on a slide
_BET_WORDS, _PICTURE_WORDS, _LINE_WORDS = 75, 75, 7  # the room that a bet, a picture and a line of code take, in words


def slide_cells(lesson: Lesson, page: str) -> list[Tag]:
    """Return the core's cells in parts that fit on a slide; ``data-slide`` is the number of a part's slide, from 1.

    Links within the lesson lead to ``page``, the lesson's page. The cells stay in one list, so that a question also
    covers the cells that follow it on later slides. Code (class ``slide-code``) takes no room: it is shown on demand.
    A bet is followed by its speaker's note, an ``aside``.
    """
    number, room, is_empty = 1, _SLIDE_WORDS, True
    cells: list[Tag] = []
    for previous, cell in zip([None, *lesson.core], lesson.core, strict=False):
        is_caption = previous is not None and previous.kind == "live" and not cell.level
        is_below = previous is not None and previous.kind == "code" and previous.element.find("img") is not None
        for part, weight, is_alone in _parts(cell, is_caption, is_below and not cell.level):
            is_start = cell.level == 2 and part.find("h2") is not None
            if not is_empty and (is_start or is_alone or weight > room):
                number, room, is_empty = number + 1, _SLIDE_WORDS, True
            part["data-slide"] = str(number)
            for link in part.find_all("a", href=re.compile("^#")):
                link["href"] = page + str(link["href"])
                link["data-kept"] = ""
            cells.append(part)
            room = 0 if is_alone else room - weight
            is_empty = is_empty and not weight
            if cell.kind == "bet":
                cells.append(_note(_bet_lines(lesson.number, part), number))
    return cells


def opening_note(teachers_page: str, number: str) -> Tag:
    """Return the note for the first slide of notebook ``number``, from its rows in the tables of ``teachers_page``."""
    rows = [line.strip("| ").split(" | ") for line in teachers_page.splitlines() if line.startswith(f"| {number} |")]
    lines = []
    for row in rows:
        if len(row) == 4 and row[1].startswith('"'):
            lines += [f"Ask: {row[1]}", f"They stumble: {row[2]}.", f"What helps: {row[3]}."]
        elif len(row) == 4 and row[2].startswith('"'):
            lines.append(f"At the bet \u201c{row[1]}\u201d expect {row[2]}. Say: {row[3]}")
    return _note(lines, 0)


def _bet_lines(number: str, bet: Tag) -> Iterator[str]:
    """Yield the lines of a bet's note: advice to wait, the right option with its reason, and remarks on the others."""
    text = " ".join(bet.get_text().split())
    questions = [find_question(name) for name in question_names() if name.startswith(f"{number}/")]
    for question in questions:
        if " ".join(question.text.replace("`", "").split()) in text:
            yield "Wait until everybody has chosen. Then press one option, and go on."
            yield f"\u2713 {question.options[question.answer].text}. {question.why}"
            yield from (f"{option.text} \u2192 {option.remark}" for option in question.options if option.remark)


def _note(lines: Iterable[str], number: int) -> Tag:
    """Return a note for slide ``number``, encoded so that the page does not reveal it before the key N is pressed."""
    items = "".join(f"<li>{inline_html(line)}</li>" for line in lines)
    packed = base64.b64encode(f"<ul>{items}</ul>".encode()).decode()
    note = html_soup(f'<aside class="slide-note" data-slide="{number}" data-note="{packed}"></aside>').aside
    assert isinstance(note, Tag)
    return note


def _parts(cell: Cell, is_caption: bool, is_below_picture: bool) -> Iterator[tuple[Tag, int, bool]]:
    """Yield each part of a cell, its weight in words, and whether only a caption may follow this part on the slide.

    The first block of a caption, or of the text below a picture, is a separate part, which can stay with the picture.
    """
    if cell.kind != "text":
        part = copy.copy(cell.element)
        is_asked_about = "def mend_" in part.get_text()  # the learner looks for a bug in this loop
        is_on_demand = cell.kind in ("code", "live") and not is_asked_about
        code = part.find_all(class_="jp-Cell-inputWrapper") if is_on_demand else []
        lines = sum(len(pre.get_text().strip().splitlines()) for pre in part.find_all("pre"))
        for wrapper in code:
            add_class(wrapper, "slide-code")
            lines -= sum(len(pre.get_text().strip().splitlines()) for pre in wrapper.find_all("pre"))
        shown_words = _LINE_WORDS * lines + _PICTURE_WORDS * (part.find("img") is not None)
        yield part, _BET_WORDS if cell.kind == "bet" else shown_words, cell.kind == "live"
        return
    body = cell.element.find(class_="jp-RenderedMarkdown")
    assert body is not None
    blocks: list[Tag] = list(body.find_all(recursive=False))
    first, blocks = (blocks[:1], blocks[1:]) if is_caption or is_below_picture else ([], blocks)
    captions = first if is_caption else None
    for group in [*filter(None, [first]), *_groups(blocks)]:
        part = copy.copy(cell.element)
        inner = part.find(class_="jp-RenderedMarkdown")
        assert inner is not None
        inner.clear()
        for block in group:
            inner.append(copy.copy(block))
        if group is captions:
            add_class(part, "lab-caption")
        yield part, 0 if group is captions else len(inner.get_text().split()), False


def _groups(blocks: Sequence[Tag]) -> Iterator[list[Tag]]:
    """Yield groups of blocks that fit on a slide; a heading, or text above code, stays with the block below."""
    group: list[Tag] = []
    word_count = 0
    for block in blocks:
        added = len(block.get_text().split())
        is_code = block.name == "pre" or block.find("pre") is not None
        if group and word_count + added > _PART_WORDS and group[-1].name not in ("h2", "h3") and not is_code:
            yield group
            group, word_count = [], 0
        group.append(block)
        word_count += added
    if group:
        yield group
