"""The card that the Lab holds memory against: chosen, kept, told, refused."""

from __future__ import annotations

import types

import pytest
import torch
from page import Page

from gradlab import Lab, Run, tasks
from gradlab.forecast.sizes import GPUS
from gradlab.scenes.from_run import RunScenes


def told(page: Page) -> list[str]:
    """What the memory panel says of cards."""
    return [text for text in page.panels["memory"].all_words().splitlines() if "holds" in text]


def test_a_lab_has_no_card_unless_it_is_asked_for() -> None:
    assert "card" not in Page(Lab("line")).names()
    page = Page(Lab("line", controls=["task", "card"]))
    assert page.control("card")["options"] == [["none", ""], *([name, name] for name in GPUS)]
    assert page.values["card"] == ""
    assert RunScenes(Run(tasks.line())).memory().capacity is None


def test_choosing_a_card_sets_the_capacity_and_says_so() -> None:
    page = Page(Lab("digits", controls=["card"]).run(2))
    assert told(page) == []
    page.turn("card", "T4")
    assert page.values["card"] == "T4"
    assert any(text.startswith("T4 holds 14.6 GiB") for text in told(page))
    assert page.note == "Memory is held against T4: 14.6 GiB."
    page.turn("card", "")
    assert page.note == "Memory is held against no card."
    assert told(page) == []


def test_the_card_stays_through_a_reset_and_another_task_and_leaves_the_recipe_alone() -> None:
    lab = Lab("line", controls=["task", "zero_grad", "card"])
    recipe = lab.runner.recipe
    lab.switch(card="L4")
    page = Page(lab)
    assert page.values["card"] == "L4"
    assert lab.runner.recipe == recipe
    lab.reset()
    page.turn("task", "digits")
    assert page.values["card"] == "L4"
    assert any(text.startswith("L4 holds") for text in told(page))
    assert lab.shown.scenes.memory().capacity == ("L4", GPUS["L4"])
    lab.switch(zero_grad=False, card="T4")
    assert not lab.runner.recipe.zero_grad
    assert lab.shown.scenes.memory().capacity == ("T4", GPUS["T4"])


def test_an_unknown_card_is_refused_and_changes_nothing() -> None:
    lab = Lab("line").switch(card="T4")
    with pytest.raises(ValueError, match=r"card must be one of T4, .*got 'RTX'"):
        lab.switch(card="RTX", lr=0.5)
    assert lab.runner.recipe.lr == 0.01
    assert lab.shown.scenes.memory().capacity == ("T4", GPUS["T4"])


def test_on_cuda_the_device_itself_is_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = types.SimpleNamespace(name="Tesla T4", total_memory=15_655_829_504)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    probes = RunScenes(Run(tasks.line()))
    assert probes.capacity() is None
    monkeypatch.setattr(probes, "run", types.SimpleNamespace(task=types.SimpleNamespace(device="cuda")))
    assert probes.capacity() == ("T4", 15_655_829_504)
    probes.card = ("L4", GPUS["L4"])
    assert probes.capacity() == ("L4", GPUS["L4"])
