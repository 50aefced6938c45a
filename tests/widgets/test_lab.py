"""The Lab without a browser: actions on the run, the code pane, the panels and the texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from page import Page

from gradlab import Lab, Recipe, Run, tasks
from gradlab._process import main_thread
from gradlab.widgets.frames import Pace

torch.set_num_threads(1)


def weights(run: Run) -> list[torch.Tensor]:
    return [param.detach().clone() for param in run.model.parameters()]


def same(weights: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights, other, strict=True))


SWITCHES = {"zero_grad": False, "set_to_none": False, "accumulate": 4, "amp": "fp16", "clip": 0.5, "lr": 0.02}


@pytest.mark.parametrize(("name", "value"), [*SWITCHES.items(), ("optimizer", "adam"), ("amp", "bf16")])
def test_a_switch_changes_code_and_run_and_keeps_the_weights(name: str, value: Any) -> None:
    lab = Lab("line").run(3)
    page, before = Page(lab), weights(lab.runner)
    old = page.code().splitlines()
    page.turn(name, str(value) if name in ("accumulate", "lr") else value)
    expected = Recipe(lr=tasks.line().lr).replace(**{name: value})
    assert lab.runner.recipe == expected
    assert page.code() == page.shown["code"]["source"] == expected.source()
    new = page.code().splitlines()
    assert {number for number, line in enumerate(new, 1) if line not in old} <= set(page.shown["changed"])
    assert 0 < len(page.shown["changed"]) < len(new)
    read = page.values[name]
    assert (float(read) if name in ("accumulate", "lr") else read) == value
    assert same(weights(lab.runner), before)
    lab.run(12)  # with fp16 the first steps are skipped until the scale is low enough
    assert lab.runner.updates == 15
    assert not same(weights(lab.runner), before)


def test_the_lab_trains_as_the_plain_loop_does() -> None:
    recipe = Recipe(lr=0.05, accumulate=3, clip=1.0)
    lab = Lab("digits", recipe, panels=["loss", "gradient", "picture", "scaler", "memory"])
    task = tasks.digits()
    names = {"model": task.build(0), "loss_fn": task.loss_fn, "batches": task.batches, "device": task.device}
    exec(recipe.source(), {"torch": torch, "epochs": 2, **names})
    lab.run(-(-len(task.batches) // 3)).run_statements(7)
    page = Page(lab)
    for _ in range(3):
        page.ask("statement")
    page.ask("update")
    page.ask("frames", count=5, every=350)
    left = 2 * -(-len(task.batches) // 3) - lab.runner.updates
    page.play(3).play(left - 4, updates=1).ask("update")
    assert same(weights(lab.runner), [param.detach() for param in names["model"].parameters()])


def test_the_warning_comes_with_a_reused_batch_and_goes() -> None:
    lab = Lab("digits").run(3)
    page = Page(lab)
    assert page.alarm == lab.warning == ""
    page.turn("zero_grad", False).play(2).ask("pause")
    assert page.alarm == lab.warning == "Step 5 applied batches 3 to 4 again: .grad was not cleared."
    page.turn("zero_grad", True).play(1).ask("pause")
    assert page.alarm == lab.warning == ""


def test_a_loop_that_ends_says_so_and_stops_playing() -> None:
    lab = Lab("line")
    page = Page(lab).ask("edit", text=lab.runner.source.replace("range(epochs)", "range(2)"))
    page.play(15)
    assert lab.model.playing
    assert not page.stopped
    page.play(20)
    assert lab.runner.updates == 16
    assert page.stopped
    assert not lab.model.playing
    assert "loop has ended" in page.note
    page.ask("reset").ask("update")
    assert lab.runner.updates == 1


def test_fp16_brings_the_scaler_panel_and_takes_it_away() -> None:
    lab = Lab("digits")
    page = Page(lab)
    assert list(page.panels) == ["loss", "gradient", "picture", "memory"]
    assert list(page.turn("amp", "fp16").play(2).panels) == ["loss", "gradient", "scaler", "memory"]
    assert "loss scale 65,536" in lab.text
    assert "65,536" in page.ask("pause").panels["scaler"].all_words()
    assert list(page.turn("amp", "off").play(1).panels) == ["loss", "gradient", "picture", "memory"]


@pytest.mark.slow
def test_save_writes_a_picture_or_a_page(tmp_path: Path) -> None:
    lab = Lab("line").run(2)
    assert lab.save(tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in lab.save(tmp_path / "x.svg").read_text()
    page = lab.save(str(tmp_path / "x.html")).read_text()
    assert page.startswith("<!doctype html>")
    assert "update 2" in page
    assert "new Replay(" in page


def test_controls_show_only_what_is_asked_for() -> None:
    page = Page(Lab("line", controls=["zero_grad"], panels=["loss"], speed="1 update/s"))
    assert page.names() == ["zero_grad"]
    for none in (["speed"], []):
        assert Page(Lab("line", controls=none, panels=["memory"])).names() == []
    assert list(page.panels) == page.shown["order"] == ["loss"]
    assert (page.shown["speeds"], page.shown["speed"], page.shown["editable"]) == ([], 1, False)
    assert Page(Lab("line", speed="full speed")).shown["speed"] is None
    assert Lab("line", speed="10 updates/s").record(3).tracks[0].frames[0]["speed"] == 10


@pytest.mark.parametrize("change", ["switch", "edit"])
def test_the_first_update_after_a_change_is_always_watched(change: str) -> None:
    lab = Lab("digits", Recipe(lr=0.05), controls=["set_to_none", "edit", "speed"], panels=["loss", "memory"]).run(3)
    lab.model.pace_at = lambda *_, **__: Pace(1e9, {}, 1e9, 0.0)  # what was drawn just now is not due for hours
    page = Page(lab).play(2)
    watched = len(lab.runner.watched)
    page.play(3)
    assert (len(lab.runner.watched), lab.runner.watched[-1][0] < 8) == (watched, True)
    if change == "switch":
        page.turn("set_to_none", False)
    else:
        page.ask("edit", text=lab.runner.source.replace("zero_grad()", "zero_grad(set_to_none=False)"))
    before = page.panels["memory"]
    page.play(1)
    assert lab.runner.watched[-1][0] == 9
    assert page.panels["memory"] is not before, "and is drawn"
    page.play(3)
    assert lab.runner.watched[-1][0] == 9


def test_after_a_pause_every_panel_is_up_to_date() -> None:
    lab = Lab("digits")
    lab.model.pace_at = lambda *_, **__: Pace(1e9, {}, 1e9, 0.0)
    page = Page(lab).play(40)
    assert "batch 40" not in page.panels["gradient"].all_words(), "not drawn again while playing"
    page.ask("pause")
    for panel, drawing in zip(page.panels.values(), lab.model.drawings(), strict=True):
        assert panel.words == drawing.words
    assert "40" in page.state


def test_an_earlier_view_is_frozen_as_it_was_before_the_cell() -> None:
    lab = Lab("bowl").run(3)
    assert lab._repr_mimebundle_()
    earlier, requests = lab._front, [lab.runner.updates]

    def ask() -> None:  # a browser's request, which is served before the call returns
        requests.append(lab.runner.updates)
        lab.handle({"do": "hello", "n": 1, "client": "page"})

    main_thread.hand_over(ask, lambda work: None)
    lab.run(5)
    assert lab._repr_mimebundle_()
    assert requests == [3, 8], "asked in the middle of the call"
    assert earlier is not None
    frame = earlier._newest()
    assert frame is not None
    assert (frame["frozen"], frame["updates"]) == (True, 3)


@pytest.mark.slow
def test_it_plays_on_its_own_where_it_is_shown_first() -> None:
    def asked_to_play(lab: Lab) -> bool:
        (frame,) = lab.handle({"do": "hello", "n": 1, "client": "page"})["frames"]
        return frame["whole"] and frame.get("play", False)

    lab = Lab("line", play=True).run(3)
    lab._repr_mimebundle_()
    assert [asked_to_play(lab), asked_to_play(lab)] == [True, False], "a page that is loaded anew"
    shown_twice = Lab("line", play=True)
    shown_twice._repr_mimebundle_()
    shown_twice._repr_mimebundle_()
    assert not asked_to_play(shown_twice)
    assert not asked_to_play(Lab("line"))
