"""Bet, run, reveal: a choice by mouse, keyboard or touch commits, and only then the outcome is seen; also offline."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import expect

from gradlab import predict
from gradlab.widgets.question import find_question

from .driving import Notebook

NAME = "03/where-do-the-weights-go"
WRONG, RIGHT = "Past the minimum and back, farther each time", "Past the minimum and back, equally far each time"
LAB = "from gradlab import Lab, predict\nLab('bowl', controls=['zero_grad'], panels=['loss'])"
FRESH = "from gradlab.widgets.predict import GUESSES; GUESSES.clear()"
ASKED = f"predict({NAME!r})"
TEXT = {"cell_type": "markdown", "source": "What to see: it swings."}
SILENT = "x = 1"
OUTCOME_SEEN = re.compile(r"^(what was measured\n)?the outcome\n?$")
OUTCOME = "print('the ' + 'outcome')\nLab('bowl', panels=['loss']).run(5)"
HEADING = {"cell_type": "markdown", "source": "A last word.\n\n## Next"}
OTHER = "print('something ' + 'else')"
CELLS = (LAB, FRESH, ASKED, TEXT, SILENT, OUTCOME, HEADING, OTHER)


def option(page: Any, words: str) -> Any:
    return page.locator(".gl-bet").get_by_role("button", name=words)


def told(page: Any) -> str:
    """What the question says after the choice."""
    return str(page.locator(".gl-bet-reply").inner_text())


def expect_covered(page: Any, covered: bool = True) -> None:
    """What follows is not seen and not reached by keyboard while it is covered; from the heading on all is seen."""
    box = page.locator(".gl-bet-cover", has_text=re.compile("^Make your bet first: what follows is covered\\."))
    expect(box).to_have_count(int(covered))
    for part in (
        page.get_by_text(OUTCOME_SEEN),
        page.locator("p", has_text="What to see: it swings."),
        page.locator("p", has_text="A last word."),
    ):
        if covered:
            expect(part).not_to_be_visible()
        else:
            expect(part).to_be_visible()
    for part in (page.get_by_role("heading", name="Next"), page.get_by_text("something else", exact=True)):
        expect(part).to_be_visible()


def test_a_click_commits_and_uncovers_the_outcome(lab_page: Callable[..., Notebook]) -> None:
    notebook = lab_page(*CELLS)
    page = notebook.page
    expect_covered(page)
    assert not page.locator(".jp-Cell", has_text="the outcome").locator("canvas").is_visible()
    page.evaluate(
        "async () => { const all = jupyterapp.shell.currentWidget.content; all.activeCellIndex = 5;"
        " await jupyterapp.commands.execute('notebook:run-cell'); }"
    )
    page.wait_for_timeout(300)
    expect_covered(page)  # what is run again, too
    option(page, WRONG).click()
    expect_covered(page, False)
    page.locator(".jp-Cell", has_text="the outcome").locator("canvas").wait_for()
    remark = next(each.remark for each in find_question(NAME).options if each.text == WRONG)
    assert told(page).startswith(f"You said: {WRONG}. {remark}".replace("`", ""))
    assert f"The answer: {RIGHT}. {find_question(NAME).why}".replace("`", "") in told(page)
    page.get_by_text("Your guesses so far: 0 of 1 right.").wait_for()
    option(page, RIGHT).click(force=True)
    page.wait_for_timeout(200)
    assert notebook.ask(f"__import__('gradlab').predict({NAME!r}).guess") == WRONG


def test_by_keyboard_it_is_kept_when_the_cell_runs_again(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(*CELLS).page
    option(page, WRONG).focus()
    page.keyboard.press("Escape")  # leaves it for its cell
    assert page.evaluate(
        "() => document.activeElement.matches('.jp-Cell') && !!document.activeElement.querySelector('.gl-bet')"
    )
    page.keyboard.press("j")  # a key of the notebook's
    assert page.evaluate("() => jupyterapp.shell.currentWidget.content.activeCellIndex") == 3
    option(page, "To the minimum, where they stop").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect_covered(page, False)
    assert told(page).startswith("Yes. ")
    assert page.evaluate("() => document.activeElement.textContent") == RIGHT  # the focus is not lost
    page = lab_page(LAB, *CELLS[2:]).page  # the same kernel
    page.get_by_text("Your guesses so far: 1 of 1 right.").wait_for()
    expect_covered(page, False)
    assert option(page, WRONG).get_attribute("aria-disabled") == "true"


def test_the_outcome_can_be_seen_without_a_bet(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(*CELLS).page
    page.get_by_role("button", name="Show it anyway").click()
    expect_covered(page, False)
    option(page, RIGHT).click()
    page.locator(".gl-bet-reply", has_text="Yes.").wait_for()


def test_a_stored_notebook_opens_with_the_outcome_folded(notebook: Notebook) -> None:
    """JupyterLab folds it, to the first line of its text. The choice unfolds it, though only the question was run."""
    page = notebook.page.context.new_page()
    page.set_default_timeout(20_000)
    try:
        question, *_ = stored_cells()
        cells = [*stored_cells(), question, nbformat.v4.new_markdown_cell("Further down.")]
        kept = nbformat.v4.new_notebook(cells=cells)
        kept.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(kept, notebook.jupyter.folder / "folded.ipynb")
        notebook.lend_kernel("folded.ipynb")
        Notebook(page, notebook.jupyter, "folded.ipynb")
        page.locator(".jp-OutputPlaceholder").wait_for()
        assert page.get_by_text(OUTCOME_SEEN).count() == 0
        page.get_by_text("something else", exact=True).wait_for()
        page.evaluate(
            "async () => { jupyterapp.shell.currentWidget.content.activeCellIndex = 0;"
            " await jupyterapp.commands.execute('notebook:run-cell'); }"
        )
        expect_covered(page)
        further = page.locator("p", has_text="Further down.")
        expect(further).not_to_be_visible()  # its question did not run, but its page has the means now
        option(page, RIGHT).click()
        expect_covered(page, False)
        expect(further).not_to_be_visible()
        box = page.locator(".gl-bet-cover", has_text="Run this cell and make your bet first: what follows is covered.")
        box.get_by_role("button", name="Show it anyway").click()
        expect(further).to_be_visible()
    finally:
        page.close()


def stored_cells() -> list[Any]:
    """Cells as they are committed: the question, the outcome folded after it, and something else."""

    def code(source: str, *outputs: Any, **metadata: Any) -> Any:
        return nbformat.v4.new_code_cell(source, outputs=list(outputs), metadata=metadata, execution_count=1)

    def said(text: str) -> Any:
        return nbformat.v4.new_output("stream", text=f"{text}\n")

    data = predict(NAME)._repr_mimebundle_()
    data.pop("application/vnd.jupyter.widget-view+json")
    asked = nbformat.v4.new_output("execute_result", data=data, execution_count=1)
    markdown = nbformat.v4.new_markdown_cell
    return [
        code(f"{FRESH}\nfrom gradlab import predict\n{ASKED}", asked),
        markdown(TEXT["source"]),
        code(SILENT),
        code("f()", said("what was measured\nthe outcome"), jupyter={"outputs_hidden": True}),
        markdown(HEADING["source"]),
        code("g()", said("something else")),
    ]


def stored(template: str) -> str:
    """A notebook as it is committed, made into a page."""
    page, _ = HTMLExporter(template_name=template).from_notebook_node(nbformat.v4.new_notebook(cells=stored_cells()))
    return str(page)


@pytest.fixture(params=["lab", "classic"])
def offline(notebook: Notebook, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page of nbconvert, or as nbviewer has it, opened from disk with the network off."""
    file = tmp_path / "page.html"
    file.write_text(stored(request.param), encoding="utf-8")
    page = notebook.page.context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)) if "require" not in str(error) else None)
    page.route(re.compile("^https?://"), lambda route: route.abort())
    page.goto(file.as_uri(), wait_until="domcontentloaded")
    page.wait_for_selector(".gl-bet button")
    yield page
    page.close()
    assert problems == []


def test_a_page_without_a_kernel_asks_and_explains(offline: Any) -> None:
    assert offline.get_by_text("Open this notebook live").is_hidden()
    expect_covered(offline)
    option(offline, WRONG).focus()
    offline.keyboard.press("Enter")
    assert told(offline).startswith(f"You said: {WRONG}.")
    assert f"The answer: {RIGHT}." in told(offline)
    expect_covered(offline, False)
