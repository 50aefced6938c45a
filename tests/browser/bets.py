"""What the tests of the bets share: which cells of a notebook follow a question, and what of them is seen in a page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat

from gradlab import predict

from .driving import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ASKS = re.compile(r'\bpredict\(\s*"([^"]+)"\s*\)')
HEADING = re.compile(r"^#{1,3} ", re.MULTILINE)
# What is seen of a cell, its code left out: its words, and how many elements of outputs and texts show anything. Text
# below a heading in a cell is told apart from what stands above it.
SEEN = """() => [...document.querySelectorAll('.jp-Cell')].map(cell => {
  const text = cell.querySelector('.jp-MarkdownCell .jp-RenderedMarkdown, .jp-MarkdownCell.jp-Cell .jp-RenderedMarkdown');
  const parts = cell.matches('.jp-MarkdownCell')
    ? [...cell.querySelector('.jp-RenderedMarkdown')?.children ?? []]
    : [...cell.querySelectorAll('.jp-Cell-outputWrapper')];
  const heading = parts.findIndex(part => /^H[123]$/.test(part.tagName));
  const shows = part => [part, ...part.querySelectorAll('*')].some(element => {
    const box = element.getBoundingClientRect();
    return element.checkVisibility({visibilityProperty: true, opacityProperty: true}) && box.width > 0 && box.height > 0
      && (element.childElementCount === 0 || element.matches('table, img, svg, canvas, .gl-bet'));
  });
  const seen = list => ({words: list.map(part => part.innerText.trim()).join(' ').trim(), shows: list.some(shows)});
  const cut = heading < 0 ? parts.length : heading;
  return {before: seen(parts.slice(0, cut)), after: seen(parts.slice(cut))};
})"""


def refreshed(path: Path) -> Any:
    """A stored notebook, its questions as running them now would store them."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        asked = ASKS.search(cell.source) if cell.cell_type == "code" else None
        if asked:
            data = dict(predict(asked[1])._repr_mimebundle_())
            data.pop("application/vnd.jupyter.widget-view+json")
            cell.outputs = [nbformat.v4.new_output("execute_result", data=data, execution_count=1)]
    return notebook
