"""Each bet of the series: cells after it are invisible before the choice, up to the next bet or heading."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert import HTMLExporter

from gradlab.widgets.question import question_names

from .bets import NOTEBOOKS, around_questions, expect_covered_until_the_choice, level, questions, stored
from .driving import Notebook, evaluate_async

# In pages, the nightly run checks every bet, other runs those of three notebooks. With a kernel a bet takes a second,
# so only two notebooks: 12, where a section ends above the next heading, and 13, with consecutive questions.
# GRADLAB_BETS=all checks all bets in JupyterLab and Notebook 7.
ALL = os.environ.get("GRADLAB_BETS") == "all"
EACH_PAGE = ALL or bool(os.environ.get("GRADLAB_NIGHTLY"))
OPEN = "([path, id]) => { jupyterapp.commands.execute('docmanager:open', {path, kernel: {id}}); }"
# A cell run earlier gets a new kernel, for which the server shuts down the shared one.
CONNECTED = """([path, id]) => {
  const {context, sessionContext} = window.jupyterapp?.shell.currentWidget ?? {};
  return context?.path === path && sessionContext.isReady && sessionContext.session?.kernel?.id === id;
}"""
LIVE_BETS = "count => document.querySelectorAll('.gl-bet[data-live]:not(.lm-mod-hidden *)').length === count"
CLOSE = """async () => {
  const panel = jupyterapp.shell.currentWidget;
  await panel.context.save();
  panel.dispose();
}"""
BACK = "path => jupyterapp.shell.currentWidget?.context?.path === path"
RENDERED = """count => {
  const cells = [...window.jupyterapp?.shell.currentWidget?.content?.node.querySelectorAll('.jp-Cell') ?? []];
  const texts = cells.filter(cell => cell.matches('.jp-MarkdownCell'));
  return cells.length === count && texts.every(cell => cell.querySelector('.jp-RenderedMarkdown')?.childElementCount);
}"""
RUN = """async places => {
  const cells = jupyterapp.shell.currentWidget.content, {commands} = jupyterapp;
  await Promise.all(places.map(place => {
    cells.activeCellIndex = place;
    cells.deselectAll();
    return commands.execute('notebook:run-cell');
  }));
}"""


@pytest.fixture
def kernel(notebook: Notebook) -> str:
    """The id of a kernel with ``predict`` and without guesses; all notebooks share it."""
    code = "from gradlab import predict; from gradlab.widgets.predict import GUESSES; GUESSES.clear()"
    notebook.ask(f"exec({code!r}, globals())")
    return str(notebook.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.id"))


def in_jupyterlab(notebook: Notebook, name: str, kernel: str) -> tuple[Any, Callable[[], object]]:
    def close() -> None:
        evaluate_async(notebook.page, CLOSE)
        notebook.page.wait_for_function(BACK, arg=notebook.name)

    notebook.page.evaluate(OPEN, [name, kernel])
    return notebook.page, close


def in_notebook_7(notebook: Notebook, name: str, kernel: str) -> tuple[Any, Callable[[], object]]:
    notebook.lend_kernel(name)
    page = notebook.page.context.new_page()
    page.goto(f"{notebook.jupyter.url}/notebooks/{name}")
    return page, page.close


@pytest.mark.parametrize("opened", [in_jupyterlab, pytest.param(in_notebook_7, marks=pytest.mark.nightly)])
def test_what_follows_a_bet_is_covered_in_a_notebook(
    notebook: Notebook, kernel: str, opened: Callable[..., tuple[Any, Callable[[], object]]]
) -> None:
    if opened is in_notebook_7 and importlib.util.find_spec("notebook") is None:
        pytest.skip("needs Notebook 7 (pip install notebook)")
    some = ("12", "13") if opened is in_jupyterlab else ("13",)
    for path in [path for path in NOTEBOOKS if ALL or path.stem.startswith(some)]:
        document = around_questions(stored(path))
        name = f"{opened.__name__}_{path.name}"
        nbformat.write(document, notebook.jupyter.folder / name)
        page, close = opened(notebook, name, kernel)
        try:
            page.wait_for_function(CONNECTED, arg=[name, kernel])
            page.wait_for_function(RENDERED, arg=len(document.cells))
            indices = questions(document.cells)
            folded = [
                cell
                for cell, after in pairwise(document.cells)
                if cell.metadata.get("jp-MarkdownHeadingCollapsed") and level(after) > level(cell)
            ]
            assert page.locator(".jp-Cell .jp-showHiddenCellsButton").count() == len(folded), "what is deeper is folded"
            page.evaluate("() => jupyterapp.commands.execute('notebook:expand-all-headings')")
            evaluate_async(page, RUN, indices)
            page.wait_for_function(LIVE_BETS, arg=len(indices))
            expect_covered_until_the_choice(page, document.cells)
        finally:
            close()


def test_what_follows_a_bet_is_covered_in_a_page(notebook: Notebook, tmp_path: Path) -> None:
    page, count = notebook.page.context.new_page(), 0
    page.route(re.compile("^https?://"), lambda route: route.abort())
    some = [path for path in NOTEBOOKS if EACH_PAGE or path.stem.startswith(("03", "12", "13"))]
    for path in some:
        document = around_questions(stored(path))
        html, _ = HTMLExporter().from_notebook_node(document)
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        page.goto((tmp_path / "page.html").as_uri(), wait_until="domcontentloaded")
        count += expect_covered_until_the_choice(page, document.cells)
    page.close()
    assert count == sum(name.startswith(tuple(path.stem[:2] for path in some)) for name in question_names())
