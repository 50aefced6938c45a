"""A lab reports trouble with kernel, connection, page or other cells, and continues where it can."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from .driving import Notebook, next_frames, save_notebook

LAB = "from gradlab import Lab, Recipe\nlab = Lab({})\nlab"
KERNEL = "jupyterapp.shell.currentWidget.sessionContext.session.kernel"
SCROLL = "to => { document.querySelector('.jp-WindowedPanel-outer').scrollTop = to; }"
STYLES = "() => [...document.querySelectorAll('style')].filter(each => each.textContent.includes('.gradlab')).length"
BROKEN = "() => [...document.images].filter(image => image.complete && !image.naturalWidth).length"


@pytest.fixture
def troubled_page(lab_page: Callable[..., Notebook], notebook: Notebook) -> Iterator[Callable[..., Notebook]]:
    """As ``lab_page``, but JupyterLab's own reports of a lost connection or kernel do not fail the test."""
    yield lab_page
    of_jupyter = (
        "WebSocket|ERR_INTERNET_DISCONNECTED|Connection lost|Kernel died|Failed to fetch|autorestart"
        "|Debugger|-Xfrozen|PYDEVD|to python to disable|Task was destroyed but it is pending|tracemalloc"
    )
    problems = [problem for problem in notebook.problems() if not re.search(of_jupyter, problem)]
    assert problems == []


def play(page: Notebook, updates: int = 5) -> None:
    """Press Play, and wait until it runs."""
    page.button("Play").click()
    page.wait_for_updates(page.updates() + updates)


@pytest.mark.nightly  # opens JupyterLab again
def test_a_page_reloaded_while_playing_plays_on(lab_page: Callable[..., Notebook]) -> None:
    # A page restores every widget of its kernel, also those of earlier tests.
    forget = "import ipywidgets\nipywidgets.Widget.close_all()"
    page = lab_page(forget, LAB.format("'digits'"), "Lab('bowl')", height=1500)
    save_notebook(page.page)
    play(page, 20)
    page.page.evaluate("() => { window.onbeforeunload = null; }")
    page.page.reload()
    page.wait_for_kernel()
    page.side_bar(False)  # JupyterLab opens it with the page; a later test in 390 px has no room for it
    page.page.wait_for_selector(".gradlab canvas")
    page.wait_until_painted()
    page.lab(1).wait_until_painted()
    assert page.page.evaluate(STYLES) == 1, "both labs share one style sheet"
    page.wait_until_still()
    assert page.button("Play").is_visible()
    assert page.updates() == page.ask("lab.runner.updates") >= 20
    assert page.code() == page.ask("lab.runner.source")
    play(page)
    page.button("Pause").click()
    page.wait_until_still()
    assert page.updates() == page.ask("lab.runner.updates")


@pytest.mark.nightly  # starts a kernel again
def test_a_lost_kernel_is_reported(troubled_page: Callable[..., Notebook]) -> None:
    cells = ("from gradlab import Lab, Recipe\nlab = Lab('digits')", "_ = lab.run(3)", "lab", "_ = lab.run(4)")
    page = troubled_page(*cells)
    play(page)
    page.page.evaluate(f"() => {KERNEL}.restart()")
    again = page.button("Run everything up to here")
    again.wait_for()
    assert page.page.locator(".gradlab .gl-main:visible").count() == 0, "no blue Play"
    assert page.button("Play").is_disabled()
    assert page.control("zero_grad").is_disabled()
    page.page.wait_for_function(f"() => {KERNEL}.status === 'idle'")
    again.click()
    page.page.wait_for_selector(".gradlab .gl-button.gl-main")
    assert page.page.locator(".gradlab .gl-gone").count() == 0
    assert page.ask("lab.runner.updates") == 3, "the cells above have run, the one below has not"
    page.wait_until_painted()
    play(page)
    page.button("Pause").click()
    page.wait_until_still()


def test_grad_fills_without_a_step_and_other_labs_go_on(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits', Recipe(zero_grad=False), panels=['loss', 'gradient']"), "Lab('bowl')")
    page.button("Edit the loop").click()
    field = page.root.locator("textarea")
    field.fill(field.input_value().replace("optimizer.step()", "pass"))
    page.button("Run this loop").click()
    page.wait_for_text(r"No step\(\) in \d\d batches: \.grad keeps filling")
    other = page.lab(1)
    other.evaluate("lab => lab.scrollIntoView()")
    play(other, 20)
    other.button("Pause").click()
    page.evaluate("lab => lab.scrollIntoView()")
    before = page.ask("lab.runner.loop.backwards")
    while page.ask("lab.runner.loop.backwards") <= before:
        next_frames(page.page)
    page.page.evaluate("() => jupyterapp.commands.execute('kernelmenu:interrupt')")
    page.wait_for_text("Interrupted. Press Play to continue.")
    page.button("Play").click()
    page.wait_for_text("No step")
    page.button("Pause").click()
    page.wait_until_still()
    count = page.ask("lab.runner.loop.backwards")
    assert f"No step() in {count} batches" in page.text()
    assert page.updates() == 0


INTERRUPT_LOSES_AN_ANSWER = """
def interrupt(front, model):
    send = front.send
    front.send = lambda answer: setattr(front, "send", send)
    model.interrupted = True
"""


def test_an_interrupt_that_loses_an_answer_ends_the_playing(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"), INTERRUPT_LOSES_AN_ANSWER)
    play(page)
    page.ask("interrupt(lab._front, lab.model)")
    page.wait_for_text("Interrupted. Press Play to continue.")
    play(page)
    page.button("Pause").click()
    page.wait_until_still()


@pytest.mark.nightly  # it waits for JupyterLab to connect again
def test_a_lost_connection_is_reported_and_the_lab_goes_on(troubled_page: Callable[..., Notebook]) -> None:
    page = troubled_page(LAB.format("'digits'"))
    play(page)
    page.page.context.set_offline(True)
    page.page.evaluate(f"() => {KERNEL}._ws.close()")
    page.wait_for_text("No connection")
    page.page.context.set_offline(False)
    page.page.evaluate(f"() => {{ {KERNEL}.reconnect(); }}")  # JupyterLab tries by itself, at growing intervals
    page.page.wait_for_function(f"() => {KERNEL}.connectionStatus === 'connected'")
    dialog = page.page.locator(".jp-Dialog button")
    if dialog.count():
        dialog.last.click()
    if page.button("Play").is_visible():
        page.button("Play").click()
    page.wait_for_updates(page.updates() + 20)
    page.button("Pause").click()
    page.wait_until_still()
    assert "kernel" not in page.text()
    assert page.updates() == page.ask("lab.runner.updates")


def test_a_running_cell_is_reported_and_the_lab_goes_on_after_it(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    play(page)
    code = "import time; time.sleep(3.5)"
    page.page.evaluate(f"code => {{ {KERNEL}.requestExecute({{code}}); }}", code)
    page.wait_for_text("A cell is running. The lab continues when the cell has finished.")
    updates = page.updates()
    page.wait_for_updates(updates + 20)
    page.wait_for("lab => !lab.innerText.includes('A cell is running')")  # the text may come a frame later
    page.button("Pause").click()
    page.wait_until_still()
    assert page.updates() == page.ask("lab.runner.updates")


def test_out_of_sight_it_pauses_and_plays_on_when_it_is_back(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"), "print('\\n' * 400)")

    def go_away_and_back() -> int:
        """Return the number of updates while it was out of sight and had stopped."""
        page.page.evaluate(SCROLL, 5000)
        page.wait_until_still()
        updates = int(page.ask("lab.runner.updates"))
        next_frames(page.page, 10)
        assert page.ask("lab.runner.updates") == updates
        page.page.evaluate(SCROLL, 0)
        return updates

    play(page)
    page.wait_for_updates(go_away_and_back() + 10)
    assert "Paused" not in page.text()
    page.button("Pause").click()
    page.wait_until_still()
    updates = go_away_and_back()
    page.wait_until_still()
    assert page.ask("lab.runner.updates") == updates, "a lab paused by hand stays paused"
