"""Play, Pause, one statement, one update, Reset, and the warning chip."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .driving import Notebook

LAB = "from gradlab import Lab, Recipe\nlab = Lab({})\nlab"


def test_lab_is_there(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    assert page.root.locator("canvas").count() == 4
    assert "optimizer.step()" in page.code()
    assert page.words().startswith("update 0 ")
    assert min(page.evaluate("lab => [...lab.querySelectorAll('canvas')].map(canvas => canvas.width)")) > 250


def test_play_trains_and_draws_until_pause(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    first = page.pictures()
    page.button("Play").click()
    page.wait_for_updates(30)
    page.button("Pause").click()
    page.wait_until_still()
    stopped = page.updates()
    assert page.button("Play").is_visible()
    assert all(now != then for now, then in zip(page.pictures(), first, strict=True))
    assert page.ask("lab.runner.updates") == stopped, "the words lag behind the run"
    assert page.ask("lab.runner.record.loss") < page.ask("lab.runner.record.rows['loss'][0]")


@pytest.mark.parametrize("speed", ["statements", "1 update/s", "10 updates/s", "full speed"])
def test_every_speed_plays(lab_page: Callable[..., Notebook], speed: str) -> None:
    page = lab_page(LAB.format("'bowl'"))
    page.turn("speed", speed)
    lit = page.lines("lit")
    page.button("Play").click()
    if speed == "statements":
        page.wait_for("lab => !lab.querySelector('pre.gl .line').classList.contains('lit')")
        assert page.lines("lit") != lit
        assert page.updates() == 0
    else:
        page.wait_for_updates(1)
    page.button("Pause").click()
    page.wait_until_still(0.3)


def one_statement(page: Notebook) -> list[int]:
    """Run one statement, and return the lines that are lit then."""
    pane = page.page.locator(".gradlab pre.gl").first
    before = pane.inner_html()
    page.button("1 statement").click()
    page.page.wait_for_function("old => document.querySelector('.gradlab pre.gl').innerHTML !== old", arg=before)
    return page.lines("lit")


def test_statements_are_lit_one_by_one(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'bowl'"))
    seen = [page.lines("lit"), *(one_statement(page) for _ in range(11))]
    # Set-up; then two headers, the five statements of the body before step() and step(); then back up to "for x, y".
    assert seen == [[line] for line in (1, 3, 4, 5, 6, 7, 8, 9, 10, 4, 5, 6)]
    assert page.updates() == 1


def test_with_block_is_lit_as_one(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'line', Recipe(amp='bf16', accumulate=2, lr=0.01)"))
    seen = [one_statement(page) for _ in range(14)]
    texts = page.code().splitlines()
    assert texts[8].strip().startswith("with torch.autocast")
    window = [[7], [8], [9, 10, 11], [12]]  # for, move, with block, backward
    assert seen == [[3], [4], [5], [6], *window, *window, [13], [4]]


def test_one_update_ends_at_step(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits', Recipe(accumulate=3, clip=1.0)"))
    for update in (1, 2):
        page.button("1 update").click()
        page.wait_for_words(f"update {update} ")
        (line,) = page.lines("lit")
        assert page.code().splitlines()[line - 1].strip() == "optimizer.step()"


def test_an_update_begun_by_statements_is_finished(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'bowl'"))
    for _ in range(4):
        page.button("1 statement").click()
    page.button("1 update").click()
    page.wait_for_words("update 1 ")
    assert page.lines("lit") == [10]


@pytest.mark.parametrize("task", ["bowl", "digits"])
def test_reset_restores_the_first_frame(lab_page: Callable[..., Notebook], task: str) -> None:
    page = lab_page(LAB.format(f"'{task}'"))
    pictures, words, code, lit = page.pictures(), page.words(), page.code(), page.lines("lit")
    page.button("Play").click()
    page.wait_for_updates(20)
    page.button("Reset").click()  # while it plays
    page.wait_for_words("update 0 ")
    page.button("Play").wait_for()
    page.wait_until_still(0.3)
    assert page.pictures() == pictures
    assert (page.words(), page.code(), page.lines("lit")) == (words, code, lit)


def test_chip_tells_of_batches_applied_twice(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    chip = page.page.locator(".gradlab .gl-chip")
    page.button("Play").click()
    page.wait_for_updates(5)
    assert chip.is_hidden()
    page.turn("zero_grad", False)
    chip.wait_for(timeout=5_000)
    assert "was not cleared" in chip.inner_text()
    page.turn("zero_grad", True)
    chip.wait_for(state="hidden", timeout=5_000)
    page.button("Pause").click()
    page.wait_until_still()


def test_a_lab_out_of_sight_stops(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page("from gradlab import Lab\nold = Lab('digits')\nold")
    page.button("Play").click()
    page.wait_for_updates(5)
    page = lab_page("lab = Lab('bowl')\nlab")  # its cell is run again
    page.page.wait_for_timeout(200)
    updates = page.ask("old.runner.updates")
    page.button("1 update").click()
    page.wait_for_updates(1)
    page.page.wait_for_timeout(200)
    assert page.ask("old.runner.updates") == updates
    assert page.ask("old.shown.playing") is False


@pytest.mark.parametrize("places", [1, 2])
def test_a_lab_whose_cell_is_run_again_goes_on(lab_page: Callable[..., Notebook], places: int) -> None:
    """It is the same lab, shown anew; and it may be seen in another cell, too."""
    page = lab_page("from gradlab import Lab\nlab = Lab('bowl', panels=['loss'])", *["lab"] * places)
    page.page.wait_for_function("places => document.querySelectorAll('.gradlab canvas').length === places", arg=places)
    page.button("1 update").click()
    page.wait_for_updates(1)
    page.page.evaluate("""async () => {
      jupyterapp.shell.currentWidget.content.activeCellIndex = 1;
      await jupyterapp.commands.execute('notebook:run-cell');
    }""")
    page.page.wait_for_timeout(300)
    page.button("1 update").click()
    page.wait_for_updates(2)
