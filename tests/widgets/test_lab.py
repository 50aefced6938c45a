"""The Lab without a browser: what a learner does to the run, the code pane, the panels and the words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from page import Page

from gradlab import Lab, Recipe, Run, tasks
from gradlab.widgets.frames import Pace
from gradlab.widgets.lab import PRESETS

torch.set_num_threads(1)


def weights(run: Run) -> list[torch.Tensor]:
    return [param.detach().clone() for param in run.model.parameters()]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


SWITCHES = {"zero_grad": False, "set_to_none": False, "accumulate": 4, "amp": "fp16", "clip": 0.5, "lr": 0.02}


@pytest.mark.parametrize(("name", "value"), [*SWITCHES.items(), ("optimizer", "adam"), ("amp", "bf16")])
def test_a_switch_changes_the_code_and_the_run_and_keeps_the_weights(name: str, value: Any) -> None:
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


def test_divide_loss_waits_for_a_window() -> None:
    page = Page(Lab("line"))
    assert page.shown["off"] == ["divide_loss"]
    page.turn("accumulate", "4")
    assert page.shown["off"] == []
    page.turn("divide_loss", False)
    assert page.code() == Recipe(lr=0.01, accumulate=4, divide_loss=False).source()


def test_the_lab_trains_as_the_plain_loop_does() -> None:
    recipe = Recipe(lr=0.05, accumulate=3, clip=1.0)
    lab = Lab("digits", recipe, panels=["loss", "gradient", "picture", "landscape", "scaler", "memory"])
    task = tasks.digits()
    names = {"model": task.build(0), "loss_fn": task.loss_fn, "batches": task.batches, "device": task.device}
    exec(recipe.source(), {"torch": torch, "epochs": 2, **names})
    lab.run(-(-len(task.batches) // 3)).step(7)
    page = Page(lab)
    for _ in range(3):
        page.ask("statement")
    page.ask("update")
    page.ask("frames", count=5, every=350)
    left = 2 * -(-len(task.batches) // 3) - lab.runner.updates
    page.play(3).play(left - 4, updates=1).ask("update")
    assert same(weights(lab.runner), [param.detach() for param in names["model"].parameters()])


def test_what_a_change_brings_with_it_is_said() -> None:
    lab = Lab("line", Recipe(optimizer="adam", lr=0.01)).run(1).step(4)
    page = Page(lab).turn("zero_grad", False)
    assert lab.runner.updates == 2
    assert "completed first" in page.note
    assert "its state starts empty" in page.turn("optimizer", "adamw").note
    assert "its state starts empty" not in page.turn("zero_grad", True).note
    assert "A new run" in page.turn("task", "digits").note
    assert lab.runner.updates == page.shown["updates"] == 0
    assert lab.runner.task.name == page.values["task"] == "digits"
    assert float(page.values["lr"]) == lab.runner.recipe.lr == tasks.digits().lr


def test_reset_shows_the_first_frame_again() -> None:
    lab = Lab("digits")
    page = Page(lab)
    first, words = page.seen(), lab.text
    page.turn("zero_grad", False).play(50)
    page.turn("zero_grad", True)
    assert all(page.seen()["panels"][name] != panel for name, panel in first["panels"].items())
    assert page.ask("reset").seen() == first
    assert lab.text == words


def test_the_warning_comes_with_a_reused_batch_and_goes_with_the_repair() -> None:
    lab = Lab("digits").run(3)
    page = Page(lab)
    assert page.alarm == lab.warning == ""
    page.turn("zero_grad", False).play(2).ask("pause")
    assert page.alarm == lab.warning == "Step 5 applied batches 3 to 4 again: .grad was not cleared."
    page.turn("zero_grad", True).play(1).ask("pause")
    assert page.alarm == lab.warning == ""


def test_an_edit_runs_and_a_switch_brings_the_recipe_back() -> None:
    lab = Lab("line").run(1)
    text = lab.runner.source.replace(
        "optimizer.step()", "optimizer.step()\n        steps = globals().get('steps', 0) + 1"
    )
    page = Page(lab).ask("edit", text=text)
    assert "your own loop" in page.note
    lab.run(4)
    assert page.ask("pause").code() == lab.runner.source == text
    assert lab.runner.updates == 5
    assert page.turn("zero_grad", False).code() == lab.runner.source == Recipe(lr=0.01, zero_grad=False).source()


def test_a_loop_that_ends_says_so_and_stops_playing() -> None:
    lab = Lab("line")
    page = Page(lab).ask("edit", text=lab.runner.source.replace("range(epochs)", "range(2)"))
    page.play(15)
    assert lab.shown.playing
    assert not page.stopped
    page.play(20)
    assert lab.runner.updates == 16
    assert page.stopped
    assert not lab.shown.playing
    assert "come to its end" in page.note
    page.ask("reset").ask("update")
    assert lab.runner.updates == 1


def test_a_divergent_run_is_drawn_and_named() -> None:
    lab = Lab("digits", Recipe(lr=1e30), panels=["loss", "gradient", "picture", "landscape", "memory"]).run(20)
    page = Page(lab)
    assert page.alarm == lab.warning
    assert "diverged" in lab.warning
    assert len(page.panels) == 5


def test_fp16_brings_the_scaler_panel_and_takes_it_away() -> None:
    lab = Lab("digits")
    page = Page(lab)
    assert list(page.panels) == ["loss", "gradient", "picture", "memory"]
    assert list(page.turn("amp", "fp16").play(2).panels) == ["loss", "gradient", "scaler", "memory"]
    assert "loss scale 65,536" in lab.text
    assert "65,536" in page.ask("pause").panels["scaler"].all_words()
    assert list(page.turn("amp", "off").play(1).panels) == ["loss", "gradient", "picture", "memory"]


def test_the_loss_is_the_same_number_in_the_words_and_in_its_panel() -> None:
    page = Page(Lab("digits")).play(37)
    page.ask("pause")
    loss = page.state.split("loss ")[1].split(" ")[0]
    assert f"now {loss}" in page.panels["loss"].texts()
    assert f"The loss is {loss} now" in page.panels["loss"].words


def test_the_saved_output_has_a_picture_and_words_beside_the_widget() -> None:
    lab = Lab("line").run(5)
    bundle, shown = lab._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"}
    assert bundle["text/plain"].startswith("line: update 5 · loss ")
    assert bundle["text/plain"].endswith(lab.runner.source), "the loop is kept, too"
    assert shown["image/png"]["alt"] == lab.text, "for who cannot see the picture"


def test_save_writes_a_picture_or_a_page(tmp_path: Path) -> None:
    lab = Lab("line").run(2)
    assert lab.save(tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in lab.save(tmp_path / "x.svg").read_text()
    page = lab.save(str(tmp_path / "x.html")).read_text()
    assert page.startswith("<!doctype html>")
    assert "update 2" in page
    assert "startReplay" in page


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_runs(name: str) -> None:
    lab = Lab.preset(name).run(20)
    assert lab.runner.updates == 20
    page = Page(lab)
    assert {*page.names(), "speed"} == {*PRESETS[name].controls, "unswitched"}
    assert page.note == PRESETS[name].say
    assert (lab.runner.record.skips > 0) == (name == "fp16 overflow")
    assert [page.shown["speed"]] == [rate for words, rate in page.shown["speeds"] if words == PRESETS[name].speed]


def test_a_preset_plays_as_slowly_as_its_name_can_be_seen() -> None:
    speeds = {name: Page(Lab.preset(name)).shown["speed"] for name in PRESETS}
    assert speeds["healthy"] == Page(Lab("line")).shown["speed"] == 60
    assert speeds["accumulation"] == 0  # an arrow comes with each backward
    # lr 0.2 on a curvature of at least 1: a swing takes 14 updates at most, which is under a quarter second at 60
    assert speeds["swing in a bowl"] == speeds["forgot zero_grad"] == 10
    assert speeds["fp16 overflow"] == 1  # the scale is halved at each update


def test_controls_show_only_what_is_asked_for_and_a_speed_is_told_all_the_same() -> None:
    page = Page(Lab("line", controls=["zero_grad"], panels=["loss"], speed="1 update/s"))
    assert page.names() == ["zero_grad", "unswitched"]
    for none in (["speed"], []):
        assert Page(Lab("line", controls=none, panels=["memory"])).names() == []
    assert list(page.panels) == page.shown["order"] == ["loss"]
    assert (page.shown["speeds"], page.shown["speed"], page.shown["editable"]) == ([], 1, False)
    assert Page(Lab("line", speed="full speed")).shown["speed"] is None
    assert Lab("line", speed="10 updates/s").record(3).tracks[0].frames[0]["speed"] == 10


@pytest.mark.parametrize("change", ["switch", "edit"])
def test_the_first_update_after_a_change_is_watched_however_busy_the_screen(change: str) -> None:
    lab = Lab("digits", Recipe(lr=0.05), controls=["set_to_none", "edit", "speed"], panels=["loss", "memory"]).run(3)
    lab.shown.pace_at = lambda *_, **__: Pace(1e9, {}, 1e9, 0.0)  # what was drawn just now is not due for hours
    page = Page(lab).play(2)
    watched = len(lab.runner.watched)
    page.play(3)
    assert (len(lab.runner.watched), lab.runner.watched[-1][0] < 8) == (watched, True)
    if change == "switch":
        page.turn("set_to_none", False)
    else:
        page.ask("edit", text=lab.runner.source.replace("set_to_none=True", "set_to_none=False"))
    before = page.panels["memory"]
    page.play(1)
    assert lab.runner.watched[-1][0] == 9
    assert page.panels["memory"] is not before, "and is drawn"
    page.play(3)
    assert lab.runner.watched[-1][0] == 9


def test_after_a_pause_every_panel_is_up_to_date() -> None:
    lab = Lab("digits")
    lab.shown.pace_at = lambda *_, **__: Pace(1e9, {}, 1e9, 0.0)
    page = Page(lab).play(40)
    assert "batch 40" not in page.panels["gradient"].all_words(), "not drawn again while playing"
    page.ask("pause")
    for panel, drawing in zip(page.panels.values(), lab.shown.drawings(), strict=True):
        assert panel.words == drawing.words
    assert "40" in page.state
