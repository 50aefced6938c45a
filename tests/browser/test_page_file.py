"""The page of ``gradlab page`` in a real browser: no request leaves, formulas are drawn, questions uncover."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import expect

from gradlab.__main__ import main

from .bets import stored
from .driving import ROOT, Notebook, violations

NOTEBOOK = ROOT / "notebooks" / "03_forgetting_zero_grad.ipynb"
# The index of w_t hangs below w: its box begins lower and ends lower.
HANGS = """() => [...document.querySelectorAll('msub')].map(sub => {
  const [base, index] = [...sub.children].map(part => part.getBoundingClientRect());
  return index.bottom > base.bottom && index.left >= base.left + base.width / 2 && index.height > 3;
})"""


@pytest.fixture
def page(notebook: Notebook, tmp_path: Path) -> Iterator[Any]:
    """The page of notebook 03 from disk; it asks for nothing but itself and tells of no error."""
    nbformat.write(stored(NOTEBOOK), tmp_path / NOTEBOOK.name)
    assert main(["page", str(tmp_path / NOTEBOOK.name), "-o", str(tmp_path)]) == 0
    page = notebook.page.context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("request", lambda it: problems.append(it.url) if not it.url.startswith(("file:", "data:")) else None)
    page.goto((tmp_path / f"{NOTEBOOK.stem}.html").as_uri())
    yield page
    page.close()
    assert problems == []


def test_a_page_is_read_without_a_network(page: Any) -> None:
    drawn = page.evaluate(HANGS)
    assert len(drawn) > 10
    assert all(drawn)
    assert page.evaluate("[...document.images].every(it => it.complete && it.naturalWidth > 100)")

    bet = page.locator(".gl-bet").first
    assert bet.get_by_role("button").count() >= 2
    cover = page.get_by_text("Make your bet first: what follows is covered.")
    cover.first.wait_for()  # it comes with the first frame that has the question
    covers = cover.count()
    bet.get_by_role("button").first.click()
    assert bet.locator(".gl-bet-reply").inner_text().startswith("You said: ")
    expect(cover).to_have_count(covers - 1)

    for width, scheme in ((1366, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 768})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert violations(page) == []
    assert page.evaluate("[...document.querySelectorAll('pre')].some(it => it.scrollWidth > it.clientWidth)")

    code = page.locator("details.code").first
    assert not code.locator("pre").is_visible()
    code.locator("summary").click()
    assert "gradlab" in code.locator("pre").inner_text()
