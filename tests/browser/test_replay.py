"""A replay in a real browser: from disk, offline, without a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradlab import Lab, Recipe, Run, tasks
from gradlab.scenes import status_line

from .driving import Notebook, button_of

UPDATES, MARK = 60, 20
# Counts the paintings of the first panel for some seconds.
COUNT = """seconds => new Promise(resolve => {
  const canvas = document.querySelector('.gradlab canvas');
  const {prototype} = CanvasRenderingContext2D;
  const {clearRect} = prototype;
  let count = 0;
  prototype.clearRect = function (...box) { count += this.canvas === canvas; return clearRect.apply(this, box); };
  setTimeout(() => { prototype.clearRect = clearRect; resolve(count); }, seconds * 1000);
})"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a recording of digits in which zero_grad can be turned."""
    recording = Lab("digits", Recipe(lr=0.05)).record(UPDATES, switches=["zero_grad"], marks=[MARK, 40])
    return recording.save(tmp_path_factory.mktemp("replay") / "replay.html")


@pytest.fixture
def replay(notebook: Notebook, saved: Path) -> Iterator[Any]:
    """That page, opened from disk; other requests and errors fail the test."""
    page = notebook.page.context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: problems.append(request.url) if not request.url.startswith("file:") else None)
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(f"{saved.as_uri()}#frame=0")
    page.wait_for_selector(".gradlab canvas")
    yield page
    page.close()
    assert problems == []


def state(page: Any) -> str:
    return str(page.locator(".gl-state").inner_text())


def updates(page: Any) -> int:
    match = re.match(r"update ([\d,]+)", state(page))
    assert match
    return int(match[1].replace(",", ""))


def press(page: Any, label: str) -> None:
    button_of(page, label).click()


def state_of(turned_at: int | None, update: int) -> str:
    """Return the status line of a new run."""
    run = Run(tasks.digits(), Recipe(lr=0.05))
    for number in range(update):
        if number == turned_at:
            run.switch(run.recipe.replace(zero_grad=False))
        run.advance(updates=1)
    return status_line(run, whole=False)


def test_it_plays_to_its_end_and_begins_again(replay: Any) -> None:
    press(replay, "Play")
    assert replay.evaluate(COUNT, 0.5) >= 5
    state_text = "() => document.querySelector('.gl-state').innerText"
    replay.wait_for_function(f"update => ({state_text})() === 'update ' + update", arg=UPDATES)
    assert state(replay) == state_of(None, UPDATES)
    replay.locator(".gl-note", has_text="begins again").wait_for()
    assert MARK <= updates(replay) < UPDATES


def test_one_statement_and_one_update(replay: Any) -> None:
    for line in (3, 4, 5):
        press(replay, "1 statement")
        assert replay.locator(".line.lit .gutter").inner_text().split()[-1] == str(line)
    for update in (1, 2, 3):
        press(replay, "1 update")
        assert updates(replay) == update
    assert state(replay) == state_of(None, 3)
    for _ in range(3):
        press(replay, "1 update")
    press(replay, "1 statement")
    assert "one frame per update" in replay.locator(".gl-note").inner_text()
    press(replay, "From zero")
    assert updates(replay) == 0


def test_a_turned_switch_goes_over_at_its_mark(replay: Any) -> None:
    replay.get_by_label("zero_grad", exact=True).uncheck()
    assert f"update {MARK}" in replay.locator(".gl-note").inner_text()
    for _ in range(MARK + 6):
        press(replay, "1 update")
    assert updates(replay) == MARK + 5  # the switch took one of the presses
    assert state(replay) == state_of(MARK, MARK + 5)
    assert not replay.get_by_label("zero_grad", exact=True).is_checked()
    assert "was not cleared" in replay.locator(".gl-chip").inner_text()


def test_beyond_the_last_mark_it_goes_back_to_turn_a_switch(replay: Any) -> None:
    replay.locator(".gl-scrub input").fill("50")
    replay.get_by_label("zero_grad", exact=True).uncheck()
    assert "recorded at update 40: gone back to it" in replay.locator(".gl-note").inner_text()
    press(replay, "1 update")
    assert state(replay) == state_of(40, 41)
    press(replay, "Reset")
    assert state(replay) == state_of(None, MARK), "to where it opens"
    press(replay, "From zero")
    assert updates(replay) == 0


def test_it_opens_where_a_switch_can_be_turned(replay: Any, saved: Path) -> None:
    assert saved.stat().st_size < 500_000
    replay.goto("about:blank")
    replay.goto(saved.as_uri())
    replay.wait_for_selector(".gradlab canvas")
    assert state(replay) == state_of(None, MARK)
    assert replay.get_by_role("heading", name=f"digits, {UPDATES} updates").is_visible()
    caption = replay.locator("header p").inner_text()
    assert caption.endswith(f"At its ticks (update {MARK}, 40) you can turn zero_grad.")
    ticks = replay.locator("datalist option").evaluate_all("all => all.map(each => each.value)")
    assert ticks == [str(MARK), "40"]
    assert replay.locator(".gl-scrub .gl-value").inner_text() == str(MARK)
    replay.get_by_label("zero_grad", exact=True).uncheck()
    for _ in range(3):
        press(replay, "1 update")
    assert state(replay) == state_of(MARK, MARK + 3), "it can be turned right there"
    press(replay, "From zero")
    replay.locator(".gl-scrub input").fill("37")
    assert updates(replay) == 37


def test_without_marks_it_opens_at_its_end(notebook: Notebook, tmp_path: Path) -> None:
    page = notebook.page.context.new_page()
    try:
        page.goto(Lab("bowl").run(9).save(tmp_path / "bowl.html").as_uri())
        page.wait_for_selector(".gradlab canvas")
        assert updates(page) == 9
        assert page.locator(".gl-controls").is_hidden()
    finally:
        page.close()


def test_a_link_is_copied_that_opens_at_what_is_shown(replay: Any, notebook: Notebook) -> None:
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    replay.get_by_role("button", name="Play").click()
    replay.wait_for_function("() => Number(document.querySelector('.gl-scrub input').value) > 3")
    press(replay, "Copy link")  # while it plays
    replay.locator(".gl-note", has_text="Copied: file:").wait_for()
    shown = state(replay)
    link = replay.evaluate("() => navigator.clipboard.readText()")
    replay.goto("about:blank")
    replay.goto(link)
    replay.wait_for_selector(".gradlab canvas")
    assert state(replay) == shown
