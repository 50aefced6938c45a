"""What a lab's panels and warning tell beside the loss: shares in the gradient, the card of the memory, the doctor."""

from __future__ import annotations

import re
import types

import pytest
import torch
from page import Page

from gradlab import Lab, Recipe, Run, tasks
from gradlab.forecasting.cards import GPUS, SHOWN
from gradlab.formatting import share_of_sum, share_text
from gradlab.scenes import PanelName, status_line
from gradlab.scenes.from_run import RunScenes

torch.set_num_threads(1)

# The gradient ---------------------------------------------------------------------------------------------------------


def gradient(lab: Lab) -> str:
    """The words of the gradient panel."""
    return next(drawing for drawing in lab.shown.drawings() if drawing.title == "gradient in .grad").words


@pytest.mark.parametrize("task", ["bowl", "digits"])
@pytest.mark.parametrize("drive", ["run", "step", "update", "another task"])
def test_all_is_measured_from_the_first_update_on(task: str, drive: str) -> None:
    lab = Lab("line" if drive == "another task" else task, Recipe(lr=0.01, accumulate=3), panels=["loss", "gradient"])
    if drive == "another task":
        Page(lab).turn("task", task).turn("accumulate", "3")
    while lab.runner.updates < 2:
        Page(lab).ask("update") if drive == "update" else lab.step() if drive == "step" else lab.run(1)
    assert "not measured" not in gradient(lab)
    assert len(re.findall(r"batch \d+: ", gradient(lab))) == 3, gradient(lab)


def test_status_picture_and_words_tell_the_same_share() -> None:
    lab = Lab("digits", Recipe(lr=0.3, zero_grad=False)).run(8)
    measured = lab.runner.provenance.contributions(lab.runner.scale_in_grad)
    assert measured is not None
    share = share_text(measured.parts[-1].share)
    assert share != share_text(measured.parts[-2].share)
    assert share != share_text(measured.parts[0].share)
    drawing = next(d for d in lab.shown.drawings() if d.title == "gradient in .grad")
    assert f"the newest is {share} of the sum" in status_line(lab.runner)
    assert f"batch 8: {share} of the sum" in drawing.words
    assert f"8: {share}" in drawing.texts()


def test_a_part_of_a_sum_that_is_nearly_zero_is_told_in_words() -> None:
    assert share_of_sum(-0.12) == "\u221212% of the sum"
    assert share_of_sum(31) == "31 times the sum"
    assert share_of_sum(-3.4e6) == "far longer than the sum"
    assert share_of_sum(float("nan")) == "an unknown part of the sum"


def test_without_the_panel_nothing_is_kept() -> None:
    lab = Lab("digits", panels=["loss"]).run(2)
    assert not lab.runner.watch_gradients
    assert PanelName.GRADIENT not in lab.shown.panels()


def test_a_recording_draws_measured_contributions() -> None:
    recording = Lab("digits", Recipe(lr=0.05, accumulate=2), panels=["loss", "gradient"]).record(6)
    assert "not measured" not in str(recording.tracks)


# The card -------------------------------------------------------------------------------------------------------------


def told(page: Page) -> list[str]:
    """What the memory panel says of cards."""
    return [text for text in page.panels["memory"].all_words().splitlines() if "holds" in text]


def test_a_card_is_chosen_told_and_left() -> None:
    assert "card" not in Page(Lab("line")).names()
    page = Page(Lab("digits", controls=["card"]).run(2))
    assert page.control("card")["options"] == [["none", ""], *([name, name] for name in SHOWN)]
    assert (page.values["card"], told(page)) == ("", [])
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
    assert lab.runner.recipe == recipe
    lab.reset()
    page.turn("task", "digits")
    assert page.values["card"] == "L4"
    assert any(text.startswith("L4 holds") for text in told(page))
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


# The doctor of a loop of one's own ------------------------------------------------------------------------------------


PLAIN = torch.autograd._engine_run_backward  # what a listening doctor exchanges


def test_the_line_and_the_fix_of_a_mistake_are_named() -> None:
    lab = Lab("digits", Recipe(clip=1.0, lr=0.1))
    lines = lab.runner.source.splitlines()
    clip = next(at for at, line in enumerate(lines) if "clip_grad_norm_" in line)
    lines[clip], lines[clip + 1] = lines[clip + 1], lines[clip]  # clipped after the step
    lab.edit("\n".join(lines))
    lab.run(8)
    assert lab.warning.startswith(f"Line {clip + 2}: ")
    assert "after the step" in lab.warning
    assert "Fix: Move this call to after the last backward()" in lab.warning
    assert Page(lab).alarm == lab.warning


def test_a_mistake_that_is_mended_is_forgotten() -> None:
    lab = Lab("digits", Recipe(clip=1.0, lr=0.1)).run(5)
    source = lab.runner.source
    assert lab.warning == ""
    lab.edit(source.replace("optimizer.step()", "optimizer.zero_grad(); optimizer.step()"))
    assert "cleared after backward()" in lab.run(5).warning
    lab.edit(source + "\n# my own\n")
    assert lab.run(5).warning == ""
    assert lab.runner.edited
    assert lab.switch(lr=0.05).run(2).warning == ""


def test_nothing_listens_between_the_slices_or_at_a_recipe() -> None:
    lab = Lab("digits").run(2)
    assert torch.autograd._engine_run_backward is PLAIN
    lab.handle({"do": "edit", "text": lab.runner.source + "\n"})
    lab.run(2).step()
    assert torch.autograd._engine_run_backward is PLAIN
