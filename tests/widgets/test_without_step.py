"""A loop that rarely or never calls step(): each batch is drawn as it comes, and the texts name the missing call."""

from __future__ import annotations

import pytest
import torch
from page import Page

from gradlab import Lab, Recipe
from gradlab.loop import LoopError

torch.set_num_threads(1)
PANELS = ["loss", "gradient"]


def without_step(lab: Lab) -> str:
    return lab.runner.source.replace("optimizer.step()", "pass")


def test_grad_is_seen_to_fill_batch_by_batch() -> None:
    lab = Lab("digits", Recipe(zero_grad=False), panels=PANELS)
    page = Page(lab)
    page.ask("edit", text=without_step(lab))
    weights = [param.clone() for param in lab.runner.model.parameters()]
    for batches in range(2, 30):
        page.ask("frames", count=1, every=100, updates=1, play=1)
        assert lab.runner.loop.backwards == batches
        assert f"batches 1–{batches}." in page.panels["gradient"].words
        lit = page.code().splitlines()[page.shown["lit"][0] - 1]
        assert "backward()" in lit
        warning = f"No step() in {batches} batches: .grad keeps filling, and no weight moves."
        assert (page.note == warning) == (batches > 8)
    assert page.state == "update 0"
    assert all(map(torch.equal, weights, lab.runner.model.parameters()))
    page.ask("pause")
    assert "No step() in 29 batches" in page.note


def test_a_loop_that_clears_but_never_steps_is_told() -> None:
    lab = Lab("digits", panels=PANELS)
    page = Page(lab)
    page.ask("edit", text=without_step(lab)).ask("frames", count=20, every=100, updates=1, play=1)
    while lab.runner.loop.backwards < 20:
        page.ask("frames", count=20, every=100, updates=1, play=1)
    assert ".grad is filled and cleared, and no weight moves" in page.note


@pytest.mark.slow
@pytest.mark.parametrize("amount", [{"updates": 1}, {"updates": 50}, {"seconds": 0.03}, {}])
def test_no_speed_ends_in_an_error_or_runs_on_and_on(amount: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlab.loop.engine.MOST_STATEMENTS", 400)
    monkeypatch.setattr("gradlab.loop.run.MOST_STATEMENTS", 400)
    lab = Lab("bowl", panels=PANELS)
    page = Page(lab)
    page.ask("edit", text=without_step(lab))
    while lab.runner.engine.statements_since_update < 900:
        before = lab.runner.engine.statements_since_update
        page.ask("frames", count=6, every=16.7, play=1, **amount)
        assert lab.runner.engine.statements_since_update - before <= 6 * 400, "a limit for each frame"
        assert not page.stopped, page.note
    page.ask("pause")  # on a busy machine the last frame is not shown yet
    assert "No step() in" in page.note


@pytest.mark.slow
def test_a_step_every_hundred_batches_ends_the_words() -> None:
    lab = Lab("bowl", Recipe(zero_grad=False), panels=PANELS)
    page = Page(lab)
    often = "for n, (x, y) in enumerate(batches * 1000, 1):\n    loss_fn(model(x), y).backward()\n"
    page.ask("edit", text=f"optimizer = torch.optim.SGD(model.parameters(), 0.01)\n{often}    if n % 100 == 0:\n"
             "        optimizer.step()\n        optimizer.zero_grad()\n")  # fmt: skip
    notes = []
    while lab.runner.updates < 2:
        page.ask("frames", count=1, every=100, updates=1, play=1)
        notes.append((lab.runner.updates, lab.runner.loop.backwards, page.note))
    assert [count for updates, count, _ in notes if updates == 0] == list(range(2, 101))
    assert [count for updates, count, _ in notes if updates == 1] == [0, *range(17, 101)], "it may gather 16"
    assert all(("No step()" in note) == (count > (16 if updates else 8)) for updates, count, note in notes)


def test_one_update_ends_with_a_sentence() -> None:
    lab = Lab("digits", panels=PANELS)
    page = Page(lab)
    page.ask("edit", text=without_step(lab)).ask("update")
    assert lab.runner.loop.backwards == 17
    assert "No step() in 17 batches" in page.note
    page.ask("update")
    assert "No step() in 18 batches" in page.note


def test_a_window_of_the_learners_own_is_one_update() -> None:
    lab = Lab("digits", Recipe(accumulate=4), panels=PANELS)
    page = Page(lab)
    page.ask("edit", text=lab.runner.source + "# mine\n").ask("update")
    assert page.state == "update 1"
    for updates in range(2, 5):
        page.ask("frames", count=1, every=100, updates=1, play=1)
        assert page.state == f"update {updates}"
        assert "step()" not in page.note


def test_a_cell_gets_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlab.loop.engine.MOST_STATEMENTS", 400)
    monkeypatch.setattr("gradlab.loop.run.MOST_STATEMENTS", 400)
    lab = Lab("bowl", panels=PANELS)
    lab.edit(without_step(lab))
    with pytest.raises(LoopError, match="400 statements ran and no optimizer took a step"):
        lab.run(10)


# Texts while it plays -------------------------------------------------------------------------------------------------


def test_words_and_panels_tell_of_the_same_update_in_each_frame() -> None:
    lab = Lab("digits", Recipe(zero_grad=False), panels=PANELS)
    page = Page(lab)
    lab.handle({"do": "hello"})
    page.ask("hello")
    shown = set()
    for _ in range(60):
        page.ask("frames", count=1, every=1000 / 60, updates=1, play=1)
        newest = int(page.state.removeprefix("update "))
        shown.add(newest)
        if newest > 1:
            assert page.panels["gradient"].texts()[1] == f"holds batches 1–{newest}"
            assert page.alarm.startswith(f"Step {newest} ") or str(newest) in page.alarm
    assert len(shown) > 20


def test_the_mark_stays_when_a_switch_is_turned() -> None:
    lab = Lab("digits", panels=PANELS)
    page = Page(lab).play(3)
    for name, value in (("zero_grad", False), ("accumulate", 4), ("zero_grad", True)):
        page.turn(name, value)
        first = page.shown["lit"][0]
        assert "optimizer.step()" in page.code().splitlines()[first - 1]


def test_notes_go_when_the_run_goes_on() -> None:
    lab = Lab("bowl", panels=PANELS).run(5)
    page = Page(lab).play(3).ask("reset")
    assert "Back at update 5" in page.note
    page.ask("frames", count=1, every=100, updates=1, play=1)
    assert page.note == ""
    page.turn("optimizer", "adam")
    assert "The optimizer is new" in page.note
    for _ in range(3):
        page.ask("frames", count=20, every=1000 / 60, updates=1, play=1)
    assert "The optimizer is new" in page.note, "for as long as it takes to read it"
    while lab.runner.updates < 500:
        page.ask("frames", count=20, every=1000 / 60, updates=1, play=1)
    assert page.note == ""
