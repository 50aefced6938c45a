"""Shared by the tests of bets: the cells of a notebook after a question, and their visible parts in a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat

from gradlab import predict

from .driving import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PREDICT_CALL = re.compile(r'\bpredict\(\s*"([^"]+)"\s*\)')
HEADING = re.compile(r"^#{1,3} ", re.MULTILINE)
# The visible parts of each cell without its code, above the first heading of a text and from it on; each is [text,
# whether any pixel is visible].
_VISIBLE_PARTS = """() => [...document.querySelectorAll('.jp-Cell:not(.lm-mod-hidden *)')].map(cell => {
  const text = cell.matches('.jp-MarkdownCell') && cell.querySelector('.jp-RenderedMarkdown');
  const parts = text ? [...text.children] : [...cell.querySelectorAll('.jp-Cell-outputWrapper')];
  const shows = part => [part, ...part.querySelectorAll('*')].some(element => {
    const {width, height} = element.getBoundingClientRect();
    const drawn = element.matches('img, svg, canvas, math, input, button')
      || [...element.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim());
    return drawn && width * height > 0 && element.checkVisibility({visibilityProperty: true});
  });
  const visible = list => [list.map(part => part.innerText.trim()).join(' ').trim(), list.some(shows)];
  const found = text ? parts.findIndex(part => /^H[123]$/.test(part.tagName)) : -1;
  const cut = found < 0 ? parts.length : found;
  return [visible(parts.slice(0, cut)), visible(parts.slice(cut))];
})"""
VisibleParts = list[Any]


def stored(path: Path) -> Any:
    """Return a stored notebook, with its questions as running them now would store them."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        call = PREDICT_CALL.search(cell.source) if cell.cell_type == "code" else None
        if call:
            data = dict(predict(call[1])._repr_mimebundle_())
            data.pop("application/vnd.jupyter.widget-view+json")
            cell.outputs = [nbformat.v4.new_output("execute_result", data=data, execution_count=1)]
    return notebook


def questions(cells: list[Any]) -> list[int]:
    """Return the indices of the cells with a question."""
    return [index for index, cell in enumerate(cells) if cell.cell_type == "code" and PREDICT_CALL.search(cell.source)]


def following(cells: list[Any]) -> tuple[set[int], set[int]]:
    """Return the indices of the cells from a question to the next question or heading, and of these headings' cells.

    The text above a heading in its cell belongs to the question, too.
    """
    covered, last, after = set(), set(), False
    for index, cell in enumerate(cells):
        heading = cell.cell_type == "markdown" and HEADING.search(cell.source)
        if index in questions(cells):
            after = True
        elif after:
            (last if heading else covered).add(index)
            after = not heading
    return covered, last


def level(cell: Any) -> int:
    """Return the level of a cell's heading, 4 without one."""
    heading = cell.cell_type == "markdown" and HEADING.search(cell.source)
    return len(heading[0].strip()) if heading else 4


def around_questions(notebook: Any) -> Any:
    """Return the notebook with only its questions, the cells after them, and headings."""
    cells = notebook.cells
    covered, last = following(cells)
    shown = covered | last | set(questions(cells))
    notebook.cells = [cell for index, cell in enumerate(cells) if index in shown or level(cell) < 4]
    return notebook


def visible_parts(page: Any) -> list[tuple[VisibleParts, VisibleParts]]:
    """Return the visible parts of each cell without its code, above its first heading and from it on."""
    page.add_style_tag(content=".jp-Cell { content-visibility: visible !important; }")  # also off the screen
    parts: list[tuple[VisibleParts, VisibleParts]] = page.evaluate(_VISIBLE_PARTS)
    return parts


def expect_covered_until_the_choice(page: Any, cells: list[Any]) -> int:
    """Check that cells after a question are seen and read out only after its choice, and all other cells always.

    Return the number of questions.
    """
    covered, last = following(cells)
    before, read_out = visible_parts(page), re.sub(r"\s+", " ", page.locator("body").aria_snapshot())
    bets = page.locator(".gl-bet:not(.lm-mod-hidden *)")
    assert bets.count() == len(questions(cells))
    bets.evaluate_all("bets => bets.forEach(bet => bet.querySelector('li button').click())")
    bets.evaluate_all("bets => bets.forEach(bet => bet.querySelector('.gl-bet-reply button')?.click())")  # Tell me
    replies = bets.locator(".gl-bet-reply").all_inner_texts()
    answered = re.compile(r"You said: .* (Yes\. |No\. .*\nThe answer: )", re.DOTALL)
    assert all(answered.match(reply) for reply in replies), replies
    after = visible_parts(page)
    elsewhere = " ".join(
        " ".join([cell.source, above[0], below[0]]) for cell, (above, below) in zip(cells, before, strict=True)
    )
    elsewhere = " ".join(elsewhere.split())
    assert len(before) == len(after) == len(cells)
    for index, cell in enumerate(cells):
        message = f"cell {index}, {cell.source[:60]!r}: {before[index]} {after[index]}"
        above, *below = re.split(r"^(?=#{1,3} )", cell.source, maxsplit=1, flags=re.MULTILINE)
        has_content = bool(above.strip()) if cell.cell_type == "markdown" else bool(cell.outputs)
        assert after[index][0][1] == has_content, message
        assert before[index][1][1] == after[index][1][1] == (cell.cell_type == "markdown" and bool(below)), message
        if index not in covered | last:
            assert before[index][0][1] == has_content, message
            continue
        assert before[index][0] == ["", False], message
        lines = [" ".join(line.split())[:40] for line in after[index][0][0].splitlines()]
        assert not [line for line in lines if len(line) > 20 and line not in elsewhere and line in read_out], message
    return bets.count()
