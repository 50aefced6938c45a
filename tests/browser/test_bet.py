"""Bets: a choice by mouse, keyboard or touch is final, and only then the outcome is visible; also offline."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import expect
from refresh_notebooks import NO_TEXT, OPENS

from gradlab import predict
from gradlab.widgets.question import find_question

from .driving import Notebook, next_frames, run_cell

NAME = "04/a-frozen-body"  # its outcome is not the loss of a lab
WRONG, RIGHT = "Further in each update, as gradients pile up", "By the same amount in each update"
BOWL = "03/where-do-the-weights-go"
LAB = "from gradlab import Lab, predict\nLab('bowl', controls=['zero_grad'], panels=['loss'])"
FRESH = "from gradlab.widgets.predict import GUESSES; GUESSES.clear()"
PREDICT = f"predict({NAME!r})"
TEXT = {"cell_type": "markdown", "source": "What to see: it swings."}
SILENT = "x = 1"
OUTCOME_SEEN = re.compile(r"^the outcome\n?$")
OUTCOME = "print('the ' + 'outcome')\nLab('bowl', panels=['loss']).run(5)"
HEADING = {"cell_type": "markdown", "source": "A last word.\n\n## Next"}
OTHER = "print('something ' + 'else')"
CELLS = (LAB, FRESH, PREDICT, TEXT, SILENT, OUTCOME, HEADING, OTHER)


def option(page: Any, label: str) -> Any:
    return page.locator(".gl-bet").get_by_role("button", name=label)


def reply_text(page: Any) -> str:
    return str(page.locator(".gl-bet-reply").inner_text())


def expect_covered(page: Any, covered: bool = True) -> None:
    """Check that cells up to the heading are invisible while covered; the heading and later cells are visible."""
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
    for part in (page.get_by_role("heading", name="Next", exact=True), page.get_by_text("something else", exact=True)):
        expect(part).to_be_visible()


def test_a_click_commits_and_uncovers_the_outcome(lab_page: Callable[..., Notebook]) -> None:
    notebook = lab_page(*CELLS)
    page = notebook.page
    expect_covered(page)
    assert not page.locator(".jp-Cell", has_text="the outcome").locator("canvas").is_visible()
    run_cell(page, 5)
    next_frames(page)
    expect_covered(page)  # also after running it again
    option(page, WRONG).click()
    expect_covered(page, False)
    page.locator(".jp-Cell", has_text="the outcome").locator("canvas").wait_for()
    remark = next(each.remark for each in find_question(NAME).options if each.text == WRONG)
    assert reply_text(page).startswith(f"You said: {WRONG}. No. {remark}".replace("`", ""))
    assert f"The answer: {RIGHT}. {find_question(NAME).why}".replace("`", "") in reply_text(page)
    page.get_by_text("Your guesses so far: 0 of 1 right.").wait_for()
    option(page, RIGHT).click(force=True)
    assert notebook.ask(f"__import__('gradlab').predict({NAME!r}).guess") == WRONG


def test_by_keyboard_it_is_kept_when_the_cell_runs_again(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(*CELLS).page
    option(page, WRONG).focus()
    page.keyboard.press("Escape")  # moves the focus to its cell
    assert page.evaluate(
        "() => document.activeElement.matches('.jp-Cell') && !!document.activeElement.querySelector('.gl-bet')"
    )
    page.keyboard.press("j")  # a key of the notebook
    assert page.evaluate("() => jupyterapp.shell.currentWidget.content.activeCellIndex") == 3
    options = [each.text for each in find_question(NAME).options]
    index = options.index(RIGHT)
    option(page, options[index - 1 if index else 1]).focus()
    page.keyboard.press("Tab" if index else "Shift+Tab")
    page.keyboard.press("Enter")
    expect_covered(page, False)
    assert reply_text(page).startswith(f"You said: {RIGHT}. Yes. ")
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


def test_a_guess_of_the_loss_stands_in_the_lab_that_decides(lab_page: Callable[..., Notebook]) -> None:
    """The answer comes when the curve is as long as the bet specifies."""
    lab = "bowl = Lab('bowl', controls=['zero_grad'], panels=['loss', 'landscape'])"
    notebook = lab_page(
        LAB, f"{FRESH}; {lab}; bowl.switch(zero_grad=False).run(20)\nNone", f"predict({BOWL!r})", "bowl"
    )
    page, notebook = notebook.page, notebook.lab(1)
    option(page, "To the minimum, where it stops").click()
    expect(page.locator(".gl-bet-reply")).to_have_text(
        "You said: To the minimum, where it stops. Look. Tell me", use_inner_text=True
    )
    notebook.wait_for("lab => lab.querySelector('[data-panel=loss]').gradlabPanel._panel.ids.includes('guess')")
    panel = "lab => lab.querySelector('[data-panel=loss]').gradlabPanel._panel"
    assert notebook.evaluate(f"lab => ({panel})(lab).marks.some(mark => mark.text === 'your guess')")
    assert notebook.evaluate(f"lab => ({panel})(lab).plots[0].x.axis.high") >= 44
    assert page.locator(".gl-bet-tally").inner_text() == ""
    for _ in range(24):
        assert "No." not in reply_text(page)
        notebook.button("1 update").click()
        notebook.wait_until_still()
    page.locator(".gl-bet-reply", has_text="No. It does get there").wait_for()
    page.get_by_text("Your guesses so far: 0 of 1 right.").wait_for()
    assert page.locator(".gradlab").first.evaluate(f"lab => !({panel})(lab).ids.includes('guess')"), "another lab"


def test_the_answer_can_be_had_at_once(lab_page: Callable[..., Notebook]) -> None:
    notebook = lab_page(LAB, FRESH, f"predict({BOWL!r})", "Lab('bowl', panels=['loss'])")
    page = notebook.page
    option(page, "To the minimum, where it stops").click()
    page.get_by_role("button", name="Tell me").click()
    assert reply_text(page).startswith("You said: To the minimum, where it stops. No. ")
    assert page.evaluate("() => document.activeElement.textContent").endswith("To the minimum, where it stops")
    page.get_by_text("Your guesses so far: 0 of 1 right.").wait_for()


@pytest.mark.nightly  # opens JupyterLab again
@pytest.mark.parametrize("saved", [True, False])
def test_after_a_reload_a_bet_works(notebook: Notebook, saved: bool) -> None:
    """In a saved, trusted notebook it is unchanged; else it asks to run its cell."""
    page = notebook.page.context.new_page()
    try:
        document = nbformat.v4.new_notebook(cells=stored_cells()[: 1 if saved else None])
        document.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        name = f"reloaded_{saved}.ipynb"
        nbformat.write(document, notebook.jupyter.folder / name)
        notebook.lend_kernel(name)
        opened = Notebook(page, notebook.jupyter, name)
        run_cell(page, 0)
        option(page, RIGHT).wait_for()
        if saved:
            page.evaluate("() => jupyterapp.shell.currentWidget.context.save()")
        page.reload()
        opened.wait_for_kernel()
        if not saved:
            page.get_by_text("To bet, run this cell where the notebook is live.").wait_for()
            run_cell(page, 0)
        expect(option(page, RIGHT)).to_be_visible()
        expect(page.locator(".gl-bet-note:visible")).to_have_count(0)
        option(page, RIGHT).click()
        expect(page.locator(".gl-bet-reply")).to_contain_text(f"You said: {RIGHT}.")
    finally:
        page.close()


@pytest.mark.nightly  # opens JupyterLab again
def test_a_stored_notebook_opens_with_the_outcome_folded(notebook: Notebook) -> None:
    """JupyterLab folds it. After the choice the learner runs its cell, and only then the answer and texts appear."""
    page = notebook.page.context.new_page()
    try:
        question, *_ = stored_cells()
        cells = [*stored_cells(), question, nbformat.v4.new_markdown_cell("Further down.")]
        document = nbformat.v4.new_notebook(cells=cells)
        document.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(document, notebook.jupyter.folder / "folded.ipynb")
        notebook.lend_kernel("folded.ipynb")
        Notebook(page, notebook.jupyter, "folded.ipynb")
        placeholder = page.locator(".jp-OutputPlaceholder")
        code = page.locator(".jp-InputPlaceholder")
        expect(code).to_have_count(2)
        assert placeholder.text_content() == ""
        assert page.get_by_text(OUTCOME_SEEN).count() == 0
        expect(page.locator("p", has_text="It tells.")).not_to_be_visible()
        bet = page.locator(".gl-bet").first
        expect(bet).to_contain_text("To bet, run this cell")
        page.get_by_text("something else", exact=True).wait_for()
        run_cell(page, 0)
        expect_covered(page)
        further = page.locator("p", has_text="Further down.")
        expect(further).not_to_be_visible()  # its question did not run, but the page has the script now
        option(page, RIGHT).click()
        expect(bet.locator(".gl-bet-reply")).to_have_text(f"You said: {RIGHT}. Run the next cell, and look. Tell me")
        assert bet.locator(".gl-bet-right, .gl-bet-wrong").count() == 0
        expect(code).to_have_count(0)
        expect(placeholder).to_be_visible()
        expect(page.locator("p", has_text="It tells.")).not_to_be_visible()
        run_cell(page, 3)
        expect(bet.locator(".gl-bet-reply")).to_contain_text(f"You said: {RIGHT}. Yes. ")
        expect(page.locator("p", has_text="It tells.")).to_be_visible()
        expect_covered(page, False)
        expect(further).not_to_be_visible()
        box = page.locator(".gl-bet-cover", has_text="Run this cell and make your bet first: what follows is covered.")
        box.get_by_role("button", name="Show it anyway").click()
        expect(further).to_be_visible()
    finally:
        page.close()


HIDDEN = {"source_hidden": True, "outputs_hidden": True}


def stored_cells() -> list[Any]:
    """Return stored cells: the question, the folded outcome after it, and other output."""

    def code(source: str, *outputs: Any, **metadata: Any) -> Any:
        return nbformat.v4.new_code_cell(source, outputs=list(outputs), metadata=metadata, execution_count=1)

    def printed(text: str) -> Any:
        return nbformat.v4.new_output("stream", text=f"{text}\n")

    data = predict(NAME)._repr_mimebundle_()
    data.pop("application/vnd.jupyter.widget-view+json")
    question = nbformat.v4.new_output("execute_result", data=data, execution_count=1)
    markdown = nbformat.v4.new_markdown_cell
    no_text = nbformat.from_dict(NO_TEXT)
    return [
        code(f"{FRESH}\nfrom gradlab import predict\n{PREDICT}", question),
        markdown(TEXT["source"]),
        code(SILENT, jupyter={"source_hidden": True}),
        code("print('the ' + 'outcome')", no_text, printed("the outcome"), jupyter=HIDDEN),
        markdown(f"{OPENS}\n\nIt tells.\n\n</details>"),
        markdown(HEADING["source"]),
        code("g()", printed("something else")),
    ]


def stored(template: str) -> str:
    """Return a stored notebook as a page."""
    page, _ = HTMLExporter(template_name=template).from_notebook_node(nbformat.v4.new_notebook(cells=stored_cells()))
    return str(page)


@pytest.fixture(params=["lab", "classic"])
def offline(notebook: Notebook, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page of nbconvert, or of nbviewer, opened from disk without network."""
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
    assert reply_text(offline).startswith(f"You said: {WRONG}. No.")
    assert f"The answer: {RIGHT}." in reply_text(offline)
    expect_covered(offline, False)
    expect(offline.locator("p", has_text="It tells.")).to_be_visible()
