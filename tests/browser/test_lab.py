"""A Lab in a notebook: its parts act on the kernel, it plays and stops, and it shows the run."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from gradlab import Recipe, tasks

from .driving import Notebook, evaluate_async, next_frames, run_cell

LAB = "from gradlab import Lab, Recipe\nlab = Lab({})\nlab"
WEIGHTS = "[v for p in lab.runner.model.parameters() for v in p.flatten().tolist()]"
SOURCE = Recipe(lr=0.2).source()
CELLS = "() => jupyterapp.shell.currentWidget.content.model.sharedModel.cells.map(cell => cell.source)"
PARTS = """lab => [...lab.querySelectorAll('.gl-control, .gl-button, canvas, pre.gl, .gl-state, .gl-note')]
  .filter(part => part.getClientRects().length)
  .map(part => [part.getBoundingClientRect(), part.className])
  .map(([{left, top}, name]) => [name, left, top - lab.getBoundingClientRect().top])"""
# Resolves to the number of times that the loss panel was painted after a click on Pause, until nothing is on its way.
PAINTS_AFTER_PAUSE = """async number => {
  const lab = document.querySelectorAll('.gradlab')[number];
  const loss = lab.querySelector('canvas'), clear = CanvasRenderingContext2D.prototype.clearRect;
  const next_frame = () => new Promise(requestAnimationFrame);
  let paints = 0, quiet = 0;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    paints += this.canvas === loss;
    return clear.apply(this, box);
  };
  while (paints < 6) await next_frame();
  lab.querySelector('.gl-player .gl-main').click();
  for (paints = 0; quiet < 10; quiet = lab.dataset.pending === '0' ? quiet + 1 : 0) await next_frame();
  CanvasRenderingContext2D.prototype.clearRect = clear;
  return paints;
}"""


def test_the_parts_are_wired_to_the_kernel(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'bowl', Recipe(lr=0.2)"))
    press, mouse = page.page.keyboard.press, page.page.mouse
    assert page.root.locator("canvas").count() == 4
    assert (page.code(), page.lines("lit")) == (SOURCE, [1])

    page.button("1 statement").click()
    page.wait_for("lab => lab.querySelectorAll('pre.gl .line')[2].classList.contains('lit')")
    page.root.locator("pre.gl .line").nth(8).click()
    page.wait_for("lab => lab.querySelectorAll('pre.gl .line')[8].classList.contains('lit')")
    assert page.ask("lab.runner.line") == 9
    page.button("1 update").click()
    page.wait_for_text("update 1")
    assert page.lines("lit") == [10]

    page.panel("gradient").focus()
    for _ in range(12):
        press("ArrowDown")
        press("Enter")
    page.wait_for_text("Batch 1 is number .* One step has applied it.")

    before = page.ask(WEIGHTS)
    mouse.move(*page.position("landscape", *page.points("landscape", "now")[0]))
    mouse.down()
    mouse.move(*page.position("landscape", 0.6, 0.4), steps=6)
    mouse.up()
    page.wait_for_text("Restarted from the weights that you set")
    page.wait_until_still()
    assert page.ask(WEIGHTS) != before
    assert page.updates() == 0

    page.button("Play").click()
    page.wait_for_updates(30)
    page.button("Pause").click()
    page.wait_until_still()
    mouse.move(*page.position("loss", 0.4, 0.5))
    mouse.down()
    mouse.move(*page.position("loss", 0.6, 0.55), steps=5)
    mouse.up()
    page.root.get_by_role("button", name="Show all").click()
    expect(page.root.get_by_role("button", name="Show all")).to_have_count(0)

    field = page.root.locator("textarea")
    page.button("Edit the loop").click()
    assert field.input_value() == page.code()
    field.fill(SOURCE.replace("optimizer.step()", "optimizer.stp()"))
    page.button("Run this loop").click()
    page.wait_for_text(r"Your loop stopped at line 10: AttributeError.*stp")
    assert page.root.locator(".gl-numbers .wrong").all_inner_texts() == ["✗ 10"]
    field.fill(SOURCE.replace("loss.backward()", "loss.backward()  # mine"))
    page.button("Run this loop").click()
    page.wait_for_text("This is your own loop")
    page.wait_for_updates(page.ask("lab.runner.updates") + 5)  # it plays
    page.button("Pause").click()
    page.wait_until_still()
    page.turn("zero_grad", False)
    page.wait_for_code(Recipe(lr=0.2, zero_grad=False).source())
    assert page.ask("lab.runner.loop.is_edited") is False


def test_another_task_is_a_new_run_and_a_bad_number_is_refused(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'bowl', Recipe(zero_grad=False, lr=0.01)"))
    page.turn("task", "digits")
    task = tasks.digits()
    page.wait_for_text("A new run")
    assert page.code() == Recipe(zero_grad=False, lr=task.lr).source()
    page.control("lr").fill("-1")
    page.control("lr").press("Tab")
    page.wait_for_text("lr must be a finite number above 0, got '-1'. It stays at 0.05.")
    expect(page.control("lr")).to_have_value("0.05")


def test_pause_stops_the_picture_where_the_run_ends(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    first = page.pictures()
    page.button("Play").click()
    page.wait_for_updates(30)
    paints = evaluate_async(page.page, PAINTS_AFTER_PAUSE, page.number)
    assert paints <= 2, "the frame that was due, and the end of the run"
    updates, loss = page.ask("lab.runner.updates, lab.runner.record.loss")
    assert page.updates() == updates
    assert all(now != then for now, then in zip(page.pictures(), first, strict=True))
    label = str(page.panel("loss").get_attribute("aria-label"))
    assert f"The loss is {float(f'{loss:.3g}'):g}" in label
    assert f"Updates 1 to {updates}" in label
    assert page.root.locator("[aria-live]").inner_text().strip().startswith(f"update {updates:,}")


def test_reset_restores_the_first_frame(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    pictures, text, code, lit = page.pictures(), page.text(), page.code(), page.lines("lit")
    page.button("Play").click()
    page.wait_for_updates(20)
    page.button("Reset").click()  # while it plays
    page.wait_for_text("update 0")
    page.button("Play").wait_for()
    page.wait_until_still()
    assert page.pictures() == pictures
    assert (page.text(), page.code(), page.lines("lit")) == (text, code, lit)


def test_nothing_shifts_when_it_plays_or_warns(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'digits'"))
    before = page.evaluate(PARTS)
    chip = page.root.locator(".gl-chip")
    page.button("Play").click()
    page.wait_for_updates(10)
    assert page.evaluate(PARTS) == before
    assert chip.is_hidden()
    page.turn("zero_grad", False)
    chip.wait_for()
    assert "was not cleared" in chip.inner_text()
    page.turn("zero_grad", True)
    chip.wait_for(state="hidden")
    assert page.evaluate(PARTS) == before
    page.button("Pause").click()
    page.wait_until_still()
    assert page.evaluate(PARTS) == before


def test_a_lab_whose_cell_has_another_output_stops(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page("from gradlab import Lab\nold = Lab('digits')\nold")
    page.button("Play").click()
    page.wait_for_updates(5)
    page = lab_page("lab = Lab('bowl')\nlab")  # its cell is run again
    page.wait_until_still()
    updates = page.ask("old.runner.updates")
    page.button("1 update").click()
    page.wait_for_updates(1)
    assert page.ask("old.runner.updates, old.model.playing") == (updates, False)


def test_a_lab_whose_cell_is_run_again_goes_on(lab_page: Callable[..., Notebook]) -> None:
    """The same lab is shown again, also in another cell."""
    page = lab_page("from gradlab import Lab\nlab = Lab('bowl', panels=['loss'])", "lab", "lab")
    page.page.wait_for_function("() => document.querySelectorAll('.gradlab canvas').length === 2")
    live = page.page.locator(".gradlab:not(.gl-frozen)")
    live.get_by_role("button", name="more", exact=True).click()
    live.get_by_role("button", name="1 update").click()
    live.get_by_text("update 1", exact=True).wait_for()
    run_cell(page.page, 1)
    page.wait_until_still()
    page.button("1 update").click()
    page.wait_for_updates(2)


def test_shortcuts_of_the_notebook_do_not_fire_inside(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'bowl'"))
    before = page.page.evaluate(CELLS)
    for where in ("button", "canvas", "pre.gl .line", "select", "input", "textarea"):
        if where == "textarea":
            page.button("Edit the loop").click()
        page.root.locator(where).first.focus()
        for key in ("b", "d", "d", "a", "x", "m", "y", "b"):
            page.page.keyboard.press(key)
        next_frames(page.page)
        assert page.page.evaluate(CELLS) == before, where
    page.button("Cancel").click()
