"""The stored outputs of a notebook with a Lab."""

from __future__ import annotations

import base64
from collections.abc import Callable

import nbformat

from .driving import Notebook, save_notebook


def test_a_saved_notebook_keeps_picture_and_words_of_a_lab(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page("from gradlab import Lab\nlab = Lab('bowl').run(7)\nlab")
    text = page.ask("lab.text")
    assert text.startswith(f"bowl: {page.text().splitlines()[0]}")
    save_notebook(page.page)
    saved = nbformat.read(page.jupyter.folder / page.name, as_version=4)
    nbformat.validate(saved)
    (output,) = saved.cells[0].outputs
    assert set(output.data) == {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"}
    assert output.data["text/plain"] == f"{text}\n\n{page.ask('lab.runner.source')}"
    assert output.metadata["image/png"]["alt"] == text
    assert base64.b64decode(output.data["image/png"])[:4] == b"\x89PNG"
