"""The loss of held-out examples against a plain loop; and measuring it changes nothing."""

from __future__ import annotations

import pytest
import torch

from gradlab import Lab, Recipe, Run, tasks
from gradlab.scenes import PanelName, RunScenes

torch.set_num_threads(1)
PANELS = ["held-out loss", "gradient"]


def losses_of_a_plain_loop(updates: int, lr: float, off: int) -> list[float]:
    """Train in plain PyTorch, without zero_grad from the update ``off`` on; return the held-out loss after each."""
    task = tasks.digits()
    model = task.build()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    x, y = task.held_out
    losses = []
    for update in range(updates):
        if update < off:
            optimizer.zero_grad()
        batch, labels = task.batches[update % len(task.batches)]
        task.loss_fn(model(batch), labels).backward()
        optimizer.step()
        with torch.no_grad():
            losses.append(float(task.loss_fn(model(x), y)))
    return losses


def test_the_curve_is_that_of_a_plain_loop() -> None:
    lab = Lab("digits", Recipe(lr=0.2), panels=PANELS).run(30)
    lab.switch(zero_grad=False).run(50).run_statements(3)
    scene = lab.model.screen.scenes.scene(PanelName.HELD_OUT)
    expected = losses_of_a_plain_loop(80, 0.2, 30)
    assert list(scene.updates) == list(range(1, 81))
    assert list(scene.mean) == pytest.approx(expected, rel=1e-5)
    assert scene.now == pytest.approx(expected[-1], rel=1e-5)
    assert scene.switches == ((30, "zero_grad off"),)


def test_measuring_changes_no_bit() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    watched, alone = (Lab("digits", panels=names).run(20) for names in ([*PANELS, "memory"], ["memory"]))
    for param, other in zip(watched.runner.model.parameters(), alone.runner.model.parameters(), strict=True):
        assert torch.equal(param, other)
        assert torch.equal(param.grad, other.grad)
    assert torch.equal(torch.get_rng_state(), before)
    assert watched.runner.watched[-1][1] == alone.runner.watched[-1][1]  # the bytes of an update are those of training


def test_a_reset_begins_the_curve_again() -> None:
    lab = Lab("digits", panels=PANELS).run(12).reset()
    assert list(lab.model.screen.scenes.scene(PanelName.HELD_OUT).updates) == []
    lab.run(3)
    assert list(lab.model.screen.scenes.scene(PanelName.HELD_OUT).updates) == [1, 2, 3]
    run = Run(tasks.digits())
    scenes = RunScenes(run)
    scenes.watch_held_out()
    run.advance(updates=5)
    run.reset()  # a reset of the run needs no new scenes
    assert list(scenes.held_out().updates) == []
    run.advance(updates=2)
    assert list(scenes.held_out().updates) == [1, 2]


def test_its_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlab.loop.history.MOST_ROWS", 64)
    run = Run(tasks.digits(batch=4))
    scenes = RunScenes(run)
    scenes.watch_held_out()
    run.advance(updates=80)
    assert 32 <= len(scenes.held_out().updates) < 64


def test_the_panel_says_what_it_shows() -> None:
    lab = Lab("digits", Recipe(lr=0.2), panels=PANELS).run(40)
    scene = lab.model.screen.scenes.scene(PanelName.HELD_OUT)
    (drawing, _) = lab.model.drawings()
    assert drawing.title == "held-out loss"
    assert drawing.words.startswith(f"The held-out loss is {scene.now:.3g} now.")


def test_a_task_without_held_out_examples_cannot_have_it() -> None:
    with pytest.raises(ValueError, match=r"'line' must be among loss, .*, got 'held-out loss'"):
        Lab("line", panels=["held-out loss"])
    lab = Lab("digits", panels=PANELS)
    lab.handle({"do": "turn", "name": "task", "value": "line"})
    assert lab.model.panels() == [PanelName.LANDSCAPE, PanelName.GRADIENT]
