"""The doctor at the Lab: what is wrong with a loop that the learner has edited is said in the chip."""

from __future__ import annotations

import torch
from page import Page

from gradlab import Lab, Recipe

PLAIN = torch.autograd._engine_run_backward  # what a listening doctor exchanges


def test_a_healthy_loop_and_an_edited_one_that_is_right_have_no_warning() -> None:
    lab = Lab("spiral", Recipe(clip=1.0, lr=0.1)).run(5)
    assert lab.warning == ""
    lab.edit(lab.runner.source + "\n# my own\n")
    lab.run(10)
    assert lab.runner.edited
    assert lab.warning == ""


def test_the_line_and_the_fix_of_a_mistake_are_named() -> None:
    lab = Lab("spiral", Recipe(clip=1.0, lr=0.1))
    lines = lab.runner.source.splitlines()
    clip = next(at for at, line in enumerate(lines) if "clip_grad_norm_" in line)
    lines[clip], lines[clip + 1] = lines[clip + 1], lines[clip]  # clipped after the step
    lab.edit("\n".join(lines))
    lab.run(8)
    assert lab.warning.startswith(f"Line {clip + 2}: ")
    assert "after the step" in lab.warning
    assert "Fix: torch.nn.utils.clip_grad_norm_" in lab.warning
    assert Page(lab).alarm == lab.warning


def test_a_mistake_that_is_mended_is_forgotten() -> None:
    lab = Lab("spiral", Recipe(lr=0.1))
    source = lab.runner.source
    lab.edit(source.replace("optimizer.step()", "optimizer.zero_grad(); optimizer.step()"))
    lab.run(5)
    assert "cleared after backward()" in lab.warning
    lab.edit(source + "\n")
    assert lab.run(5).warning == ""
    assert lab.switch(lr=0.05).run(2).warning == ""


def test_nothing_listens_between_the_slices_or_at_a_recipe() -> None:
    lab = Lab("spiral").run(2)
    assert torch.autograd._engine_run_backward is PLAIN
    lab.handle({"do": "edit", "text": lab.runner.source + "\n"})
    lab.run(2).step()
    assert torch.autograd._engine_run_backward is PLAIN
