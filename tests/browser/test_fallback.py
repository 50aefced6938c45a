"""A Lab where the widget's JavaScript does not load: the still picture, the words and what to do."""

from __future__ import annotations

import re

import pytest

from .driving import Jupyter, Notebook, write_notebook


@pytest.mark.parametrize("line", ["lab = Lab('digits').run(7)", "lab = ForecastLab()"])
def test_the_still_picture_is_seen(notebook: Notebook, jupyter: Jupyter, line: str) -> None:
    page = notebook.page.context.new_page()
    page.route(re.compile("extensions/anywidget"), lambda route: route.abort())
    write_notebook(
        jupyter.folder / "still.ipynb", f"from gradlab import Lab\nfrom gradlab.course import ForecastLab\n{line}\nlab"
    )
    try:
        other = Notebook(page, jupyter, "still.ipynb")
        page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")
        still = page.locator("[data-gradlab-still]")
        still.wait_for()
        assert still.locator("img").evaluate("img => img.complete && img.naturalWidth > 400")
        said = still.inner_text()
        assert other.ask("lab.text").splitlines()[0] in said
        assert "pip install anywidget" in said
        assert page.locator(".gradlab").count() == 0
    finally:
        page.close()


def test_the_still_picture_goes_when_the_lab_is_there(notebook: Notebook) -> None:
    notebook.show("from gradlab import Lab\nlab = Lab('bowl')\nlab")
    assert notebook.page.locator("[data-gradlab-still]").count() == 1
    assert not notebook.page.locator("[data-gradlab-still]").is_visible()
