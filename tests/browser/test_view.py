"""A lab whose cell has just run is in view with its Play button; keys that run cells move on to the next cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .driving import Notebook

FILL = {"cell_type": "markdown", "source": "\n\n".join(["words"] * 12)}
AFTER = {"cell_type": "markdown", "source": "after"}
LAB = "from gradlab import Lab\nlab = Lab('digits', panels=['loss', 'gradient']).run(3)\nlab"
SMALL = "from gradlab import Lab\nsmall = Lab('line', controls=['lr'], panels=['loss'])\nsmall"
NOTEBOOK = "jupyterapp.shell.currentWidget.content"
ACTIVATE = (
    f"at => {{ {NOTEBOOK}.activeCellIndex = at; {NOTEBOOK}.mode = 'command'; {NOTEBOOK}.activeCell.node.focus(); }}"
)
SEEN = """lab => {
  const outer = lab.closest('.jp-WindowedPanel-outer').getBoundingClientRect();
  const play = lab.querySelector('.gl-main').getBoundingClientRect(), all = lab.getBoundingClientRect();
  const next = document.querySelector('.jp-Cell.jp-mod-active').getBoundingClientRect();
  return [play.top >= outer.top && play.bottom <= outer.bottom, all.top >= outer.top && all.bottom <= outer.bottom,
    next.top < outer.bottom];
}"""


def active(page: Notebook) -> int:
    return int(page.page.evaluate(f"() => {NOTEBOOK}.activeCellIndex"))


def put(page: Notebook, *cells: str | dict[str, Any]) -> None:
    """Insert cells below the first one without running them."""
    page.page.evaluate(
        f"""cells => {{
          const shared = {NOTEBOOK}.model.sharedModel;
          shared.insertCells(1, cells.map(cell => typeof cell === 'string'
            ? {{cell_type: 'code', metadata: {{}}, outputs: [], source: cell}} : {{metadata: {{}}, ...cell}}));
        }}""",
        list(cells),
    )


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (390, 844)])
def test_a_lab_is_in_view_after_shift_enter(lab_page: Callable[..., Notebook], width: int, height: int) -> None:
    page = lab_page(SMALL, width=width, height=height)
    page.side_bar(width > 600)
    put(page, FILL, LAB, AFTER, FILL, FILL)
    page.page.evaluate(ACTIVATE, 1)
    for _ in range(2):
        page.page.keyboard.press("Shift+Enter")
    lab = page.lab(1)
    page.page.wait_for_function("() => document.querySelectorAll('.gradlab canvas').length > 1")
    lab.wait_until_painted()
    lab.wait_for(f"lab => ({SEEN})(lab)[0]")
    play, whole, following = lab.evaluate(SEEN)
    assert play
    assert active(page) == 3
    if width > 600:
        assert whole
        assert following, "the cell below is visible, too"
    page.side_bar(False)


def test_a_lab_that_goes_on_below_is_in_view_there(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(SMALL)
    still = '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="900"></svg>'  # higher than the lab
    stored = [{"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": still}}]
    again = {"cell_type": "code", "source": "_ = lab.run(5)\nlab", "outputs": stored}
    put(page, FILL, LAB, FILL, again, AFTER, FILL, FILL)
    page.page.evaluate(ACTIVATE, 2)
    for index in range(3, 6):
        page.page.keyboard.press("Shift+Enter")
        page.page.wait_for_function(f"index => {NOTEBOOK}.activeCellIndex === index", arg=index)
    page.page.wait_for_function("() => document.querySelectorAll('.gradlab').length === 3")
    lab, earlier = page.lab(2), page.lab(1)
    lab.wait_until_painted()
    lab.wait_for(f"lab => ({SEEN})(lab)[0]")
    earlier.wait_for_text("update 3[^]*It continues in the next cell")
    assert lab.updates() == 8
    assert earlier.button("Play").is_disabled()
    lab.button("Play").click()
    lab.wait_for_updates(20)
    lab.button("Pause").click()
    assert earlier.updates() == 3


def test_shift_enter_runs_the_cell_and_moves_on(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page("from gradlab import Lab\nlab = Lab('bowl')\nlab", "after = 1")
    page.button("Play").click()
    page.wait_for_updates(5)
    page.button("Pause").click()
    page.wait_until_still()
    page.button("Play").focus()
    before = page.ask("id(lab)")
    page.page.keyboard.press("Shift+Enter")
    page.page.wait_for_function(f"() => {NOTEBOOK}.activeCellIndex === 1")
    assert page.ask("id(lab)") != before, "the cell has run"
    page.wait_until_painted()
    assert page.ask("lab.runner.updates, lab.model.playing") == (0, False)
