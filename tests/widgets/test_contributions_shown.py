"""The gradient panel of a lab: measured from the first update on, and the same shares in picture, words and status."""

from __future__ import annotations

import re

import pytest
import torch

from gradlab import Lab, Recipe
from gradlab.formatting import share_of_sum, share_text
from gradlab.scenes import PanelName, status_line

torch.set_num_threads(1)


def gradient(lab: Lab) -> str:
    """The words of the gradient panel."""
    return next(drawing for drawing in lab.shown.drawings() if drawing.title == "gradient in .grad").words


@pytest.mark.parametrize("task", ["bowl", "line", "spiral", "digits", "text"])
def test_all_is_measured_from_the_first_update_on(task: str) -> None:
    for drive in ("run", "step", "update"):
        lab = Lab(task, Recipe(lr=0.01, accumulate=3), panels=["loss", "gradient"])
        if drive == "run":
            lab.run(2)
        elif drive == "step":
            while lab.runner.updates < 2:
                lab.step()
        else:
            lab.handle({"do": "update"})
            lab.handle({"do": "update"})
        words = gradient(lab)
        assert "not measured" not in words
        assert len(re.findall(r"batch \d+: ", words)) == 3, words


def test_another_task_is_measured_too() -> None:
    lab = Lab("bowl", Recipe(lr=0.01))
    lab.handle({"do": "turn", "name": "task", "value": "digits"})
    lab.switch(accumulate=3)
    lab.runner.advance(updates=1)
    assert len(re.findall(r"batch \d+: ", gradient(lab))) == 3


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
