"""The core of a notebook as slides: its cells, dealt out so that each slide fits a projector, and a speaker's notes."""

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

_WORDS = 90  # of text in one part
_ROOM = 140  # words on one slide; what else stands on it counts as so many
_BET, _PICTURE, _LINE = 75, 75, 7


def slide_cells(lesson: Lesson, page: str) -> list[Tag]:
    """Return the cells of the core, each with the number of its slide as ``data-slide``, from 1 on.

    ``page`` is where links within the lesson lead: to its own page. The cells stay in one list, as the cells of a
    notebook do, so that a question covers what follows it on later slides, too. A slide shows code on demand, so code,
    which has the class ``slide-code``, takes no room. After a bet comes what a speaker says to it, an ``aside``.
    """
    number, room, is_empty = 1, _ROOM, True
    dealt: list[Tag] = []
    for before, cell in zip([None, *lesson.core], lesson.core, strict=False):
        is_caption = before is not None and before.kind == "live" and not cell.level
        is_below = before is not None and before.kind == "code" and before.element.find("img") is not None
        for part, weight, alone in _parts(cell, is_caption, is_below and not cell.level):
            starts = cell.level == 2 and part.find("h2") is not None
            if not is_empty and (starts or alone or weight > room):
                number, room, is_empty = number + 1, _ROOM, True
            part["data-slide"] = str(number)
            for link in part.find_all("a", href=re.compile("^#")):
                link["href"] = page + str(link["href"])
                link["data-kept"] = ""
            dealt.append(part)
            room = 0 if alone else room - weight
            is_empty = is_empty and not weight
            if cell.kind == "bet":
                dealt.append(_note(_bet_lines(lesson.number, part), number))
    return dealt


def opening_note(teachers_page: str, number: str) -> Tag:
    """Return the note to a notebook's first slide: its rows in the tables of the teachers' page."""
    rows = [line.strip("| ").split(" | ") for line in teachers_page.splitlines() if line.startswith(f"| {number} |")]
    lines = []
    for row in rows:
        if len(row) == 4 and row[1].startswith('"'):
            lines += [f"Ask: {row[1]}", f"They stumble: {row[2]}.", f"What helps: {row[3]}."]
        elif len(row) == 4 and row[2].startswith('"'):
            lines.append(f"At the bet \u201c{row[1]}\u201d expect {row[2]}. Say: {row[3]}")
    return _note(lines, 0)


def _bet_lines(number: str, bet: Tag) -> Iterator[str]:
    """Yield what to say to a bet: wait, the right option, why, and a remark to each wrong one."""
    words = " ".join(bet.get_text().split())
    questions = [find_question(name) for name in question_names() if name.startswith(f"{number}/")]
    for question in questions:
        if " ".join(question.text.replace("`", "").split()) in words:
            yield "Wait until everybody has chosen. Then press one option, and go on."
            yield f"\u2713 {question.options[question.answer].text}. {question.why}"
            yield from (f"{option.text} \u2192 {option.remark}" for option in question.options if option.remark)


def _note(lines: Iterable[str], number: int) -> Tag:
    """Return a note, packed: the text of the page does not tell the answer to a bet, and the key N unpacks it."""
    items = "".join(f"<li>{inline_html(line)}</li>" for line in lines)
    packed = base64.b64encode(f"<ul>{items}</ul>".encode()).decode()
    note = html_soup(f'<aside class="slide-note" data-slide="{number}" data-note="{packed}"></aside>').aside
    assert isinstance(note, Tag)
    return note


def _parts(cell: Cell, is_caption: bool, is_below_picture: bool) -> Iterator[tuple[Tag, int, bool]]:
    """Yield a cell in parts, each with its weight in words, and whether only a caption follows it on its slide.

    The first block of a caption, or of what is below a picture, is a part of its own: it goes with what it is about.
    """
    if cell.kind != "text":
        part = copy.copy(cell.element)
        is_asked_about = "def mend_" in part.get_text()  # a loop in which a bug is to be found
        code = (
            part.find_all(class_="jp-Cell-inputWrapper") if cell.kind in ("code", "live") and not is_asked_about else []
        )
        lines = sum(len(pre.get_text().strip().splitlines()) for pre in part.find_all("pre"))
        for wrapper in code:
            add_class(wrapper, "slide-code")
            lines -= sum(len(pre.get_text().strip().splitlines()) for pre in wrapper.find_all("pre"))
        weight = _BET if cell.kind == "bet" else _LINE * lines + _PICTURE * (part.find("img") is not None)
        yield part, weight, cell.kind == "live"
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
    """Yield blocks of text together as long as they fit a slide; a heading and words above code go with the next."""
    group: list[Tag] = []
    words = 0
    for block in blocks:
        more = len(block.get_text().split())
        is_code = block.name == "pre" or block.find("pre") is not None
        if group and words + more > _WORDS and group[-1].name not in ("h2", "h3") and not is_code:
            yield group
            group, words = [], 0
        group.append(block)
        words += more
    if group:
        yield group
