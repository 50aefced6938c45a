"""A Lab without the widget's JavaScript: the still picture, its text and instructions."""

from __future__ import annotations

import re

from .driving import Notebook, write_notebook


def test_the_still_picture_is_seen_where_no_widget_loads(notebook: Notebook) -> None:
    start = "from gradlab import Lab\nfrom gradlab.course import ForecastLab\n"
    write_notebook(
        notebook.jupyter.folder / "still.ipynb", f"{start}lab = Lab('digits').run(7)\nlab", "fit = ForecastLab()\nfit"
    )
    notebook.lend_kernel("still.ipynb")
    page = notebook.page.context.new_page()  # the page behind it does not move until this one is closed
    try:
        page.route(re.compile("extensions/anywidget"), lambda route: route.abort())
        other = Notebook(page, notebook.jupyter, "still.ipynb")
        page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")
        for number, name in enumerate(("lab", "fit")):
            still = page.locator("[data-gradlab-still]").nth(number)
            still.wait_for()
            assert still.locator("img").evaluate("img => img.complete && img.naturalWidth > 400")
            text = still.inner_text()
            assert other.ask(f"{name}.text").splitlines()[0] in text
            assert "pip install anywidget" in text
        assert page.locator(".gradlab").count() == 0
    finally:
        page.close()


def test_the_still_picture_goes_when_the_lab_is_there(notebook: Notebook) -> None:
    notebook.show("from gradlab import Lab\nlab = Lab('bowl')\nlab")
    assert notebook.page.locator("[data-gradlab-still]").count() == 1
    assert not notebook.page.locator("[data-gradlab-still]").is_visible()
