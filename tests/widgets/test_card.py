"""The card that the Lab holds memory against: chosen, kept, told, refused."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch

from gradlab import Lab, Run, tasks
from gradlab.forecast.gpus import GPUS
from gradlab.scenes.from_run import RunScenes
from gradlab.scenes.kinds import Memory


def told(lab: Lab) -> str:
    """What the memory panel says about the card."""
    panel: Any = lab.controller.screen._canvases[Memory]
    return str(panel._room.get_text())


def test_a_lab_has_no_card_unless_it_is_asked_for() -> None:
    assert "card" not in Lab("line").controller.controls.widgets
    control = Lab("line", controls=["task", "card"]).controller.controls.widgets["card"]
    assert [value for _, value in control.options] == ["", *GPUS]
    assert control.value == ""
    assert RunScenes(Run(tasks.line())).memory().capacity is None


def test_choosing_a_card_sets_the_capacity_and_says_so() -> None:
    lab = Lab("digits", controls=["card"]).run(2)
    assert told(lab) == ""
    lab.controller.controls.widgets["card"].value = "T4"
    assert lab.controller._scenes.memory().capacity == ("T4", GPUS["T4"])
    assert told(lab).startswith("T4 holds 14.6 GiB: 0.00")
    assert "T4: 14.6 GiB" in lab.controller.words.value
    lab.controller.controls.widgets["card"].value = ""
    assert lab.controller._scenes.memory().capacity is None
    assert told(lab) == ""


def test_the_card_stays_through_a_reset_and_another_task_and_leaves_the_recipe_alone() -> None:
    lab = Lab("line", controls=["task", "zero_grad", "card"])
    recipe = lab.runner.recipe
    lab.switch(card="L4")
    assert lab.controller.controls.widgets["card"].value == "L4"
    assert lab.runner.recipe == recipe
    lab.reset()
    lab.controller.controls.widgets["task"].value = "digits"
    assert lab.controller.controls.widgets["card"].value == "L4"
    assert lab.controller._scenes.memory().capacity == ("L4", GPUS["L4"])
    lab.switch(zero_grad=False, card="T4")
    assert not lab.runner.recipe.zero_grad
    assert lab.controller._scenes.memory().capacity == ("T4", GPUS["T4"])


def test_an_unknown_card_is_refused_and_changes_nothing() -> None:
    lab = Lab("line").switch(card="T4")
    with pytest.raises(ValueError, match=r"card must be one of T4, .*got 'RTX'"):
        lab.switch(card="RTX", lr=0.5)
    assert lab.runner.recipe.lr == 0.01
    assert lab.controller._scenes.memory().capacity == ("T4", GPUS["T4"])


def test_on_cuda_the_device_itself_is_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = types.SimpleNamespace(name="Tesla T4", total_memory=15_655_829_504)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    probes = RunScenes(Run(tasks.line()))
    assert probes.capacity() is None
    monkeypatch.setattr(probes, "run", types.SimpleNamespace(task=types.SimpleNamespace(device="cuda")))
    assert probes.capacity() == ("T4", 15_655_829_504)
    probes.card = ("L4", GPUS["L4"])
    assert probes.capacity() == ("L4", GPUS["L4"])
