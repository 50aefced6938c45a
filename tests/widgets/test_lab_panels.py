"""A lab's panels and warning beside the loss: shares in the gradient, the card of the memory, the doctor."""

from __future__ import annotations

import types

import pytest
import torch
from page import Page

from gradlab import Lab, Recipe, Run, tasks
from gradlab.scenes import status_line
from gradlab.scenes.from_run import RunScenes
from gradlab.widgets.frames import RECORDED

torch.set_num_threads(1)

# The gradient ---------------------------------------------------------------------------------------------------------


def gradient(lab: Lab) -> str:
    """The words of the gradient panel."""
    return next(drawing for drawing in lab.model.drawings() if drawing.title == "gradient in .grad").words


def test_status_and_picture_tell_the_same_count() -> None:
    lab = Lab("digits", Recipe(lr=0.3, zero_grad=False)).run(8)
    drawing = next(d for d in lab.model.drawings() if d.title == "gradient in .grad")
    assert "7 of them reused: batch 1 has been applied 8 times" in status_line(lab.runner)
    assert drawing.find("arrow 0").words.endswith("applied 5 to 8 times")
    assert "Batch 1 is" in lab.model.screen.scenes.about_batch(1)
    assert "It has been applied 8 times" in lab.model.screen.scenes.about_batch(1)


# The memory -----------------------------------------------------------------------------------------------------------


def test_an_update_is_watched_whole_or_not_at_all() -> None:
    model = Lab("digits").model
    model.playing, model.pace_at = True, lambda *_, **__: RECORDED  # in which memory is due now and then
    frames, watched = [], {}
    for _ in range(70):
        model.run_statement_for(350.0)
        model.frame(only_due=True)
        frames.append(model.runner.statement.label)
        watched.update((update, points) for update, points in model.runner.watched)
    whole = list(dict.fromkeys(frames[frames.index("x, y") : frames.index("step") + 1]))
    assert len(watched) > 3
    assert watched.pop(max(watched))
    for points in watched.values():
        assert list(dict.fromkeys(point.statement for point in points if point.statement != "for")) == whole


# The card -------------------------------------------------------------------------------------------------------------


def test_on_cuda_the_device_itself_is_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = types.SimpleNamespace(name="Tesla T4", total_memory=15_655_829_504)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    probes = RunScenes(Run(tasks.line()))
    assert probes.capacity() is None
    monkeypatch.setattr(probes, "run", types.SimpleNamespace(task=types.SimpleNamespace(device="cuda")))
    assert probes.capacity() == ("T4", 15_655_829_504)


# The doctor of a loop of one's own ------------------------------------------------------------------------------------


PLAIN = torch.autograd._engine_run_backward  # what a listening doctor exchanges


def test_the_line_and_the_fix_of_a_mistake_are_named() -> None:
    lab = Lab("digits", Recipe(clip=1.0, lr=0.1))
    lines = lab.runner.source.splitlines()
    clip = next(index for index, line in enumerate(lines) if "clip_grad_norm_" in line)
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
    assert lab.runner.loop.is_edited
    assert lab.switch(lr=0.05).run(2).warning == ""


def test_nothing_listens_between_the_slices_or_at_a_recipe() -> None:
    lab = Lab("digits").run(2)
    assert torch.autograd._engine_run_backward is PLAIN
    lab.handle({"do": "edit", "text": lab.runner.source + "\n"})
    lab.run(2).run_statements()
    assert torch.autograd._engine_run_backward is PLAIN
