"""The curve without the newest switch, as a page sees it: when it is there, how far it goes, and what ends it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from page import Page
from torch import nn

from gradlab import Lab, Recipe, Run
from gradlab.formatting import short
from gradlab.scenes import PanelName

torch.set_num_threads(1)
PLAIN = {"controls": ["zero_grad", "lr"], "panels": ["loss"]}


def lab_at(updates: int = 20, name: Any = "digits", **more: Any) -> Lab:
    return Lab(name, **{**PLAIN, **more}).run(updates)


def curve(lab: Lab, panel: str = "loss") -> Any:
    """The curve beside the loss, None without one."""
    return lab.model.screen.scenes.scene(PanelName(panel)).unswitched  # type: ignore[union-attr]


def losses_never_switched(lab: Lab, recipe: Recipe, updates: int) -> list[float]:
    run = Run(lab.runner.task, recipe)
    run.advance(updates=updates)
    return list(run.record.rows["loss"])


def same_weights(model: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(("name", "how"), [("digits", "page"), ("bowl", "python"), ("line", "statements")])
def test_a_switch_shows_how_the_loss_goes_without_it(name: str, how: str) -> None:
    lab = lab_at(name=name)
    page, recipe = Page(lab), lab.runner.recipe
    assert curve(lab) is None
    if how == "python":
        lab.switch(zero_grad=False).run(30)
    else:
        page.turn("zero_grad", False)
        assert curve(lab) is None  # nothing has happened since
        if how == "page":
            page.play(30)
        else:
            while lab.runner.updates < 50:
                page.ask("statement")
    shown = curve(lab)
    assert shown.switched == "zero_grad on"
    assert list(shown.updates) == list(range(21, 51))
    assert list(shown.mean) == losses_never_switched(lab, recipe, 50)[20:]
    assert shown.now == shown.mean[-1]
    page.ask("hello")
    assert any("had you left zero_grad on" in text or ", zero_grad on" in text for text in page.panels["loss"].texts())
    assert "Had you left zero_grad on, the loss would be" in page.panels["loss"].words
    alone = Run(lab.runner.task, recipe)
    alone.advance(updates=20)
    alone.switch(recipe.replace(zero_grad=False))
    alone.advance(updates=30)
    assert same_weights(alone.model, lab.runner.model)


def test_the_held_out_loss_is_measured_only_where_it_is_shown() -> None:
    lab = Lab("digits", Recipe(lr=0.2), controls=["zero_grad"], panels=["held-out loss", "loss"]).run(10)
    lab.switch(zero_grad=False).run(12)
    never = Lab("digits", Recipe(lr=0.2), panels=["held-out loss"]).run(22)
    curve_data = never.model.screen.scenes.held_out()
    assert list(curve(lab, "held-out loss").mean) == list(curve_data.mean)[10:]
    assert "the held-out loss would be" in Page(lab).panels["held-out loss"].words
    other = lab_at().switch(zero_grad=False).run(3)
    assert other.model.screen.scenes.unswitched.after_update is None  # type: ignore[union-attr]


def test_switches_at_one_update_count_as_one() -> None:
    lab = lab_at().switch(zero_grad=False).switch(lr=0.5).run(5)
    assert curve(lab).switched == "zero_grad on, lr 0.05"
    assert list(curve(lab).mean) == losses_never_switched(lab, Recipe(lr=0.05), 25)[20:]
    assert curve(lab_at().switch(zero_grad=False).switch(zero_grad=True).run(5)) is None
    lab = lab_at().switch(zero_grad=False).run(5)
    assert list(curve(lab.switch(zero_grad=False).run(5)).updates) == list(range(21, 31))  # nothing was switched


@pytest.mark.parametrize("end", ["restart", "task", "edit", "own loop switched"])
def test_it_is_gone_after(end: str) -> None:
    lab = lab_at(controls=["zero_grad", "task", "edit"]).switch(zero_grad=False).run(5)
    page = Page(lab)
    own_loop = lab.runner.source.replace("loss.backward()", "(2 * loss).backward()")
    if end == "restart":
        page.ask("restart")
    elif end == "task":
        page.turn("task", "line")
    else:
        page.ask("edit", text=own_loop)
        if end == "own loop switched":
            page.play(3)
            page.turn("zero_grad", True)
    page.play(3)
    assert curve(lab) is None
    assert "without" not in page.panels["loss"].ids


def test_at_full_speed_it_stands_and_says_until_where() -> None:
    lab = lab_at().switch(zero_grad=False)
    page = Page(lab).play(6)
    update = lab.runner.updates
    page.ask("frames", count=2, every=33, seconds=0.01)
    page.play(5)
    assert list(curve(lab).updates) == list(range(21, update + 1))
    assert any(f"at update {update}" in text for text in page.panels["loss"].texts())
    page.ask("hello")
    assert "at full speed it is left out" in page.panels["loss"].words
    page.turn("zero_grad", True).play(4)
    assert curve(lab).ended == ""
    assert len(curve(lab).updates) == 4


def failing(*_: Any) -> Any:
    raise RuntimeError("no")


def test_a_run_that_cannot_be_copied_is_switched_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "unswitched", failing)
    lab = lab_at().switch(zero_grad=False).run(3)
    assert curve(lab) is None
    assert lab.runner.recipe.zero_grad is False


def test_a_recording_shows_the_track_that_was_left() -> None:
    lab = Lab("line", Recipe(lr=0.01), controls=["zero_grad"], panels=["loss"])
    left, turned = lab.record(40, switches=["zero_grad"], marks=[10]).tracks
    assert not any("without" in str(frame.get("panels")) for frame in left.frames)
    texts = [panel["words"] for frame in turned.frames for panel in frame.get("panels", {}).values()]
    never = losses_never_switched(lab, Recipe(lr=0.01), 40)[-1]
    assert f"Had you left zero_grad on, the loss would be {short(never)} now." in texts[-1]
    assert [control["name"] for control in turned.frames[0]["controls"]] == ["zero_grad"]
    assert lab.record(5).tracks[0].frames[0]["controls"] == []  # nothing is switched there
