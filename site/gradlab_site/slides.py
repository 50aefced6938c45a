"""The core of a notebook as slides: its cells, dealt out so that each slide fits a projector."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence

from bs4 import Tag

from .lessons import Cell, Lesson
from .pages import add_class

_WORDS = 90  # of text in one part
_ROOM = 140  # words on one slide; what else stands on it counts as so many
_BET, _PICTURE, _LINE = 75, 75, 7


def slide_cells(lesson: Lesson, page: str) -> list[Tag]:
    """Return the cells of the core, each with the number of its slide as ``data-slide``, from 1 on.

    ``page`` is where links within the lesson lead: to its own page. The cells stay in one list, as the cells of a
    notebook do, so that a question covers what follows it on later slides, too.
    """
    number, room = 1, _ROOM
    dealt: list[Tag] = []
    for before, cell in zip([None, *lesson.core], lesson.core, strict=False):
        is_caption = before is not None and before.kind == "live" and not cell.level
        for part, weight, alone in _parts(cell, is_caption):
            starts = cell.level == 2 and part.find("h2") is not None
            if dealt and (starts or alone or weight > room):
                number, room = number + 1, _ROOM
            part["data-slide"] = str(number)
            for link in part.find_all("a", href=re.compile("^#")):
                link["href"] = page + str(link["href"])
                link["data-kept"] = ""
            dealt.append(part)
            room = 0 if alone else room - weight
    return dealt


def _parts(cell: Cell, is_caption: bool) -> Iterator[tuple[Tag, int, bool]]:
    """Yield a cell in parts, each with its weight in words, and whether only a caption follows it on its slide."""
    if cell.kind != "text":
        lines = sum(len(pre.get_text().strip().splitlines()) for pre in cell.element.find_all("pre"))
        weight = _BET if cell.kind == "bet" else _LINE * lines + _PICTURE * (cell.element.find("img") is not None)
        yield copy.copy(cell.element), weight, cell.kind == "live"
        return
    body = cell.element.find(class_="jp-RenderedMarkdown")
    assert body is not None
    blocks: list[Tag] = list(body.find_all(recursive=False))
    captions, blocks = (blocks[:1], blocks[1:]) if is_caption else ([], blocks)
    for group in [*filter(None, [captions]), *_groups(blocks)]:
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
    """Yield blocks of text together as long as they fit a slide; a heading stays with what follows it."""
    group: list[Tag] = []
    words = 0
    for block in blocks:
        more = len(block.get_text().split())
        if group and words + more > _WORDS and group[-1].name not in ("h2", "h3"):
            yield group
            group, words = [], 0
        group.append(block)
        words += more
    if group:
        yield group
