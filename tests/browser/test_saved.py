"""What a notebook with a Lab in it keeps when it is saved, and what is left of it where no kernel runs."""

from __future__ import annotations

import base64
import runpy
from collections.abc import Callable
from html.parser import HTMLParser

import nbformat
from nbconvert import HTMLExporter

from .driving import ROOT, Notebook

VIEW = "application/vnd.jupyter.widget-view+json"
SAVE = "async () => { await jupyterapp.commands.execute('docmanager:save'); }"


class Reader(HTMLParser):
    """Collects the pictures and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.pictures.append(dict(attrs).get("src") or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def read(notebook: nbformat.NotebookNode) -> Reader:
    """Convert a notebook to HTML and read that."""
    page, _ = HTMLExporter().from_notebook_node(notebook)
    reader = Reader()
    reader.feed(page)
    return reader


def test_saved_notebook_shows_the_lab_without_a_kernel(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page("from gradlab import Lab\nlab = Lab('bowl').run(7)\nlab")
    words = page.words().splitlines()[0]
    text = page.ask("lab.text")
    page.page.evaluate(SAVE)
    saved = nbformat.read(page.jupyter.folder / page.name, as_version=4)
    (output,) = saved.cells[0].outputs
    assert {VIEW, "image/png", "text/plain"} <= set(output.data)

    saved.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    runpy.run_path(str(ROOT / "tests" / "refresh_notebooks.py"))["clean"](saved)
    nbformat.validate(saved)
    assert "widgets" not in saved.metadata
    (output,) = saved.cells[0].outputs
    assert set(output.data) == {"image/png", "text/plain"}
    assert text == f"bowl: {words}"
    assert output.data["text/plain"] == f"{text}\n\n{page.ask('lab.runner.source')}"
    assert output.metadata["image/png"]["alt"] == text

    shown = read(saved)
    assert [base64.b64decode(src.split(",")[1])[:4] for src in shown.pictures] == [b"\x89PNG"]
    assert base64.b64decode(shown.pictures[0].split(",")[1]) == base64.b64decode(output.data["image/png"])
