"""The scale of the gradient's pictures: it changes only when a batch comes, and only grows while the loop stays."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from gradlab import Recipe, tasks
from gradlab.loop import Run
from gradlab.scenes import PanelName, RunScenes
from gradlab.scenes.camera import Camera
from gradlab.scenes.from_run import lay_flat
from gradlab.scenes.kinds import Arrows, BatchArrow


def reach(camera: Camera, newest: int, ahead: float, aside: float = 0.0, loop: str = "a", usual: bool = True) -> float:
    camera.observe(loop, newest, (ahead, aside), ahead, usual=usual)
    return camera.reach


def test_the_sum_leaves_the_picture_before_it_reaches_farther() -> None:
    camera = Camera(flat=True)
    assert reach(camera, 1, 1.0) == 2.0
    assert [reach(camera, newest, 2.5) for newest in (2, 3, 4, 5)] == [2.0, 2.0, 2.0, 3.0]
    assert reach(camera, 6, 0.1) == 3.0
    assert reach(camera, 6, 99.0) == 3.0  # no batch has come: a step, or zero_grad()
    assert reach(camera, 7, 1.0, aside=4.0) == 4.5  # at its sides nothing leaves it
    assert reach(camera, 50, 20.0) > 20.0  # it was not seen to leave


def test_a_loop_that_comes_back_has_its_scale_again() -> None:
    camera = Camera(flat=True)
    assert reach(camera, 1, 1.0) == 2.0
    assert reach(camera, 60, 20.0, loop="b") > 20
    assert reach(camera, 61, 1.5) == 2.0
    assert reach(camera, 1, 0.1) == pytest.approx(0.2)  # the run has begun again


def test_one_batch_is_usual_while_none_is_applied_again() -> None:
    camera = Camera(flat=True)
    for newest, length in enumerate((1.0, 3.0, 2.0, 9.0), 1):
        reach(camera, newest, length, usual=length < 9)
    assert camera.one_batch == 2.0


def test_the_range_stays_at_a_step_and_grows_with_the_sum() -> None:
    run = Run(tasks.digits(), Recipe(lr=0.2))
    scenes = RunScenes(run)
    scenes.watch_for([PanelName.GRADIENT])
    reaches: list[tuple[str, float]] = []
    for update in range(12):
        if update == 4:
            run.switch(Recipe(lr=0.2, zero_grad=False))
        goal = run.updates + 1
        while run.updates < goal:
            run.run_statement()
            reaches.append((run.statement.label, scenes.gradient().reach))
    assert all(before == after or label == "backward" for (_, before), (label, after) in pairwise(reaches))
    assert all(before <= after for (_, before), (_, after) in pairwise(reaches))
    assert reaches[-1][1] > 2 * reaches[10][1]


def test_arrows_laid_flat_keep_length_and_share() -> None:
    run = Run(tasks.digits(), Recipe(lr=0.2, accumulate=4))
    run.watch_gradients = True
    run.advance(updates=3)
    scene = RunScenes(run).gradient()
    assert isinstance(scene, Arrows)
    assert scene.elements == 17226
    assert sum(arrow.y for arrow in scene.arrows) == pytest.approx(0.0, abs=1e-6)
    vectors = run.provenance.contributions().vectors  # type: ignore[union-attr]
    assert vectors is not None
    for arrow, row in zip(scene.arrows, vectors, strict=True):
        assert arrow.length == pytest.approx(float(row.norm()), rel=1e-5)
        assert math.hypot(arrow.x, arrow.y) == pytest.approx(arrow.length, rel=0.2)
    two = lay_flat([BatchArrow((1, 1), 1.0, 0.0, 0.5, length=2.0), BatchArrow((2, 2), 1.0, 0.0, 0.5, length=2.0)])
    assert [math.hypot(arrow.x, arrow.y) for arrow in two] == pytest.approx([2.0, 2.0])


def test_the_next_step_of_two_weights_is_foretold() -> None:
    run = Run(tasks.bowl(), Recipe(lr=0.1, zero_grad=False))
    scenes = RunScenes(run)
    scenes.watch_for([PanelName.LANDSCAPE])
    run.advance(updates=3)
    assert scenes.gradient().move is None  # it has become the newest part of the path
    while run.statement.label != "backward":
        run.run_statement()
    scene = scenes.gradient()
    assert scene.move is not None
    foretold = [weight + more for weight, more in zip(scene.path[-1], scene.move, strict=True)]
    run.run_statement()
    assert scenes.landscape().path[-1] == pytest.approx(foretold, rel=1e-5)  # type: ignore[union-attr]
    momentum = Run(tasks.bowl(), Recipe(lr=0.1, optimizer="momentum"))
    momentum.watch_gradients = True
    while momentum.statement.label != "backward":
        momentum.run_statement()
    assert RunScenes(momentum).gradient().move is None
