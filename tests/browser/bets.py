"""What the tests of the bets share: which cells of a notebook follow a question, and what of them a page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat

from gradlab import predict

from .driving import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ASKS = re.compile(r'\bpredict\(\s*"([^"]+)"\s*\)')
HEADING = re.compile(r"^#{1,3} ", re.MULTILINE)
# What is seen of each cell, its code left out: above the first heading of a text, which is [words, whether any pixel of
# it can be seen], and from there on.
_SEEN = """() => [...document.querySelectorAll('.jp-Cell:not(.lm-mod-hidden *)')].map(cell => {
  const text = cell.matches('.jp-MarkdownCell') && cell.querySelector('.jp-RenderedMarkdown');
  const parts = text ? [...text.children] : [...cell.querySelectorAll('.jp-Cell-outputWrapper')];
  const shows = part => [part, ...part.querySelectorAll('*')].some(element => {
    const {width, height} = element.getBoundingClientRect();
    const drawn = element.matches('img, svg, canvas, math, input, button')
      || [...element.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim());
    return drawn && width * height > 0 && element.checkVisibility({visibilityProperty: true});
  });
  const seen = list => [list.map(part => part.innerText.trim()).join(' ').trim(), list.some(shows)];
  const found = text ? parts.findIndex(part => /^H[123]$/.test(part.tagName)) : -1;
  const cut = found < 0 ? parts.length : found;
  return [seen(parts.slice(0, cut)), seen(parts.slice(cut))];
})"""
Seen = list[Any]


def stored(path: Path) -> Any:
    """A notebook as it is stored, its questions as running them now would store them."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        asked = ASKS.search(cell.source) if cell.cell_type == "code" else None
        if asked:
            data = dict(predict(asked[1])._repr_mimebundle_())
            data.pop("application/vnd.jupyter.widget-view+json")
            cell.outputs = [nbformat.v4.new_output("execute_result", data=data, execution_count=1)]
    return notebook


def questions(cells: list[Any]) -> list[int]:
    """The places of the cells that ask."""
    return [at for at, cell in enumerate(cells) if cell.cell_type == "code" and ASKS.search(cell.source)]


def following(cells: list[Any]) -> tuple[set[int], set[int]]:
    """The places of the cells that follow a question up to the next question or heading; last, those with the heading.

    What stands above a heading in its cell belongs to the question, too.
    """
    inside, last, after = set(), set(), False
    for at, cell in enumerate(cells):
        heading = cell.cell_type == "markdown" and HEADING.search(cell.source)
        if at in questions(cells):
            after = True
        elif after:
            (last if heading else inside).add(at)
            after = not heading
    return inside, last


def level(cell: Any) -> int:
    """How deep a section is that a cell begins, 4 if it begins none."""
    heading = cell.cell_type == "markdown" and HEADING.search(cell.source)
    return len(heading[0].strip()) if heading else 4


def around_questions(notebook: Any) -> Any:
    """The notebook without what follows no question, but for its headings."""
    cells = notebook.cells
    inside, last = following(cells)
    kept = inside | last | set(questions(cells))
    notebook.cells = [cell for at, cell in enumerate(cells) if at in kept or level(cell) < 4]
    return notebook


def seen(page: Any) -> list[tuple[Seen, Seen]]:
    """What is seen of each cell, its code left out, above its first heading and from there on."""
    page.add_style_tag(content=".jp-Cell { content-visibility: visible !important; }")  # those far from the screen, too
    found: list[tuple[Seen, Seen]] = page.evaluate(_SEEN)
    return found


def expect_covered_until_the_choice(page: Any, cells: list[Any]) -> int:
    """Nothing that follows a question is seen or read out before its choice, everything is after it.

    What follows no question is always seen. Return how many questions there are.
    """
    inside, last = following(cells)
    before, read_out = seen(page), re.sub(r"\s+", " ", page.locator("body").aria_snapshot())
    asked = page.locator(".gl-bet:not(.lm-mod-hidden *)")
    assert asked.count() == len(questions(cells))
    asked.evaluate_all("bets => bets.forEach(bet => bet.querySelector('li button').click())")
    asked.evaluate_all("bets => bets.forEach(bet => bet.querySelector('.gl-bet-reply button')?.click())")  # Tell me
    replies = asked.locator(".gl-bet-reply").all_inner_texts()
    told = re.compile(r"You said: .* (Yes\. |No\. .*\nThe answer: )", re.DOTALL)
    assert all(told.match(reply) for reply in replies), replies
    after = seen(page)
    elsewhere = " ".join(
        " ".join([cell.source, above[0], below[0]]) for cell, (above, below) in zip(cells, before, strict=True)
    )
    elsewhere = " ".join(elsewhere.split())
    assert len(before) == len(after) == len(cells)
    for at, cell in enumerate(cells):
        told = f"cell {at}, {cell.source[:60]!r}: {before[at]} {after[at]}"
        above, *below = re.split(r"^(?=#{1,3} )", cell.source, maxsplit=1, flags=re.MULTILINE)
        there = bool(above.strip()) if cell.cell_type == "markdown" else bool(cell.outputs)
        assert after[at][0][1] == there, told
        assert before[at][1][1] == after[at][1][1] == (cell.cell_type == "markdown" and bool(below)), told
        if at not in inside | last:
            assert before[at][0][1] == there, told
            continue
        assert before[at][0] == ["", False], told
        lines = [" ".join(line.split())[:40] for line in after[at][0][0].splitlines()]
        assert not [line for line in lines if len(line) > 20 and line not in elsewhere and line in read_out], told
    return asked.count()
