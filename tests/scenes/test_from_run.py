"""The scenes of the panels, against plain PyTorch; and reading them changes nothing."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from points import points
from torch import nn

from gradlab import Recipe, Run, tasks
from gradlab.memory.storages import footprint
from gradlab.scenes import PanelName, RunScenes
from gradlab.scenes.kinds import Arrows, Landscape, Samples
from gradlab.tasks import Task

torch.set_num_threads(1)


def noisy(seed: int) -> nn.Module:
    """A model that draws random numbers and keeps running means."""
    return nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3))


LOOKED_AT = [
    (tasks.bowl(), "fp16"),
    (tasks.digits(), "fp16"),
    (tasks.text(batch=1), "off"),
    (dataclasses.replace(points(), name="noisy", builder=noisy), "off"),
]


@pytest.mark.parametrize(("task", "amp"), LOOKED_AT, ids=lambda value: getattr(value, "name", value))
def test_looking_changes_nothing(task: Task, amp: str) -> None:
    recipe = Recipe(lr=0.01, zero_grad=False, amp=amp, accumulate=2)
    watched, alone = Run(task, recipe), Run(task, recipe)
    [*watched.model.modules()][-1].eval()  # a part that the learner has frozen stays frozen
    modes = [module.training for module in watched.model.modules()]
    watched.watch_memory = True
    scenes = RunScenes(watched)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    for _ in range(4):
        watched.advance(updates=1)
        alone.advance(updates=1)
        for panel in scenes.names():
            scenes.scene(panel)
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in alone.model.state_dict().items():
        assert torch.equal(watched.model.state_dict()[name], value), name
    for watched_param, other in zip(watched.model.parameters(), alone.model.parameters(), strict=True):
        assert torch.equal(watched_param.grad, other.grad)
    assert [module.training for module in watched.model.modules()] == modes


def test_arrows_are_gradients_of_batches_and_add_up_to_grad() -> None:
    task = tasks.line()
    run = Run(task, Recipe(lr=0.01, accumulate=4, divide_loss=False))
    run.watch_gradients = True
    run.advance(updates=1)
    while run.provenance.backwards < 7:
        run.run_statement()
    scene = RunScenes(run).gradient()
    assert isinstance(scene, Arrows)
    assert [(arrow.batches, arrow.applied) for arrow in scene.arrows] == [((n, n), (0, 0)) for n in (5, 6, 7)]
    for arrow in scene.arrows:
        x, y = task.batches[arrow.batches[0] - 1]
        expected = torch.autograd.grad(task.loss_fn(run.model(x), y), run.model.weight)[0]
        assert torch.tensor([[arrow.x, arrow.y]]).allclose(expected)
    total = torch.tensor([[sum(a.x for a in scene.arrows), sum(a.y for a in scene.arrows)]])
    assert total.allclose(run.model.weight.grad)
    assert torch.tensor([scene.total]).allclose(run.model.weight.grad)


def test_each_step_is_counted_for_all_that_it_applies() -> None:
    run = Run(tasks.line(), Recipe(lr=0.01, zero_grad=False))
    run.watch_gradients = True
    scenes, shown = RunScenes(run), []
    while len(shown) < 4:
        run.run_statement()
        if run.statement.label in ("backward", "step"):
            shown.append([(arrow.batches, arrow.applied) for arrow in scenes.gradient().arrows])
    first, second = (1, 1), (2, 2)
    assert shown == [
        [(first, (0, 0))],
        [(first, (1, 1))],
        [(first, (1, 1)), (second, (0, 0))],
        [(first, (2, 2)), (second, (1, 1))],
    ]


def test_a_step_that_the_scaler_skips_has_applied_nothing() -> None:
    run = Run(tasks.bowl(), Recipe(lr=0.1, amp="fp16"))
    run.watch_gradients = True
    while run.statement.label != "backward":
        run.run_statement()
    for param in run.model.parameters():
        param.grad.fill_(math.inf)
    before = [param.detach().clone() for param in run.model.parameters()]
    while run.statement.label != "step":
        run.run_statement()
    assert all(map(torch.equal, before, run.model.parameters()))
    assert not any(arrow.applied[1] for arrow in RunScenes(run).gradient().arrows)


def test_arrows_under_a_scaler_are_in_the_units_of_the_loss() -> None:
    run = Run(tasks.bowl(), Recipe(lr=0.1, amp="fp16"))
    run.watch_gradients = True
    run.advance(updates=12)
    while run.statement.label != "backward":
        run.run_statement()
    scene = RunScenes(run).gradient()
    assert isinstance(scene, Arrows)
    by_hand = run.model.weight.detach() * torch.tensor([[1.0, 0.1]])  # the gradient of the bowl: curvature times weight
    assert run.loop.scale_in_grad() > 1
    assert torch.tensor([[scene.arrows[-1].x, scene.arrows[-1].y]]).allclose(by_hand, rtol=2e-3)
    assert torch.tensor([scene.total]).allclose(by_hand, rtol=2e-3)


def test_older_batches_make_up_the_rest_of_grad() -> None:
    run = Run(tasks.bowl(), Recipe(lr=0.2, zero_grad=False))
    run.watch_gradients = True
    run.advance(updates=100)
    scene = RunScenes(run).gradient()
    assert isinstance(scene, Arrows)
    assert len(scene.arrows) == 5
    x = sum(arrow.x for arrow in scene.arrows)
    assert x == pytest.approx(float(run.model.weight.grad[0, 0]), rel=1e-4)


def test_contours_are_the_mean_loss() -> None:
    task = tasks.line()
    scene = RunScenes(Run(task)).landscape()
    assert isinstance(scene, Landscape)
    model = task.build()
    for i, j in ((0, 0), (7, 30), (40, 12)):
        with torch.no_grad():
            model.weight.copy_(torch.tensor([[scene.contours.x[j], scene.contours.y[i]]]))
            mean = torch.stack([task.loss_fn(model(x), y) for x, y in task.batches]).mean()
        assert scene.contours.loss[i][j] == pytest.approx(float(mean), rel=1e-4)


def test_contours_grow_with_the_path_but_rarely() -> None:
    run = Run(tasks.bowl(), Recipe(lr=2.2))
    scenes = RunScenes(run)
    shown = []
    for _ in range(60):
        run.advance(updates=1)
        scene = scenes.landscape()
        assert isinstance(scene, Landscape)
        shown.append(scene.contours)
        assert max(map(abs, scene.path[-1])) <= max(scene.contours.x[-1], scene.contours.y[-1])
    assert len({id(contours) for contours in shown}) < 30


def test_the_digits_network_has_an_arrow_for_each_batch_in_grad() -> None:
    run = Run(tasks.digits(), Recipe(lr=0.05, zero_grad=False))
    run.watch_gradients = True
    run.advance(updates=3)
    while run.provenance.backwards < 4:
        run.run_statement()
    scene = RunScenes(run).gradient()
    assert scene.contours is None
    assert [(arrow.batches, arrow.applied) for arrow in scene.arrows] == [
        ((n, n), (4 - n, 4 - n)) for n in (1, 2, 3, 4)
    ]
    whole = torch.cat([p.grad.flatten() for p in run.model.parameters()]).norm()
    assert scene.total == pytest.approx((float(whole), 0.0))
    assert sum(arrow.x for arrow in scene.arrows) == pytest.approx(float(whole), rel=1e-4)
    assert scene.holds == [(1, 4)]


def test_old_arrows_are_put_together_and_a_window_never_is() -> None:
    forgot = Run(tasks.digits(), Recipe(lr=0.01, zero_grad=False))
    forgot.watch_gradients = True
    forgot.advance(updates=30)
    (older, *newest) = RunScenes(forgot).gradient().arrows
    assert (older.batches, older.applied, len(newest)) == ((1, 26), (5, 30), 4)
    assert older.share + sum(arrow.share for arrow in newest) == pytest.approx(1.0, abs=1e-3)
    window = Run(tasks.digits(), Recipe(lr=0.01, accumulate=16))
    window.watch_gradients = True
    window.advance(updates=1)
    assert [arrow.batches for arrow in RunScenes(window).gradient().arrows] == [(n, n) for n in range(1, 17)]


def test_pictures_say_what_the_model_says() -> None:
    run = Run(tasks.digits())
    run.advance(updates=200)
    scene = RunScenes(run).picture()
    assert isinstance(scene, Samples)
    assert run.task.held_out is not None
    x, y = run.task.held_out
    predicted = run.model(x).argmax(1)
    assert scene.predicted == predicted[: len(scene.predicted)].tolist()
    assert scene.accuracy == pytest.approx(float((predicted == y).float().mean()))


def test_memory_counts_each_storage_once() -> None:
    model = nn.Sequential(nn.Linear(10, 10, bias=False), nn.Linear(10, 10, bias=False))
    model[1].weight = model[0].weight  # tied
    optimizer = torch.optim.Adam(model.parameters())
    assert footprint(model, [optimizer]) == {"weights": 400, "gradients": 0, "optimizer": 0}
    model(torch.ones(1, 10)).sum().backward()
    optimizer.step()
    assert footprint(model, [optimizer]) == {"weights": 400, "gradients": 400, "optimizer": 2 * 400 + 4}
    model[0].weight.grad = torch.zeros(1000)[:100].view(10, 10)  # a small view keeps all of its storage alive
    assert footprint(model, [optimizer])["gradients"] == 4000


def test_every_panel_has_a_probe() -> None:
    runs = [Run(task, Recipe(amp="fp16", lr=0.05)) for task in (tasks.digits(), tasks.bowl())]
    names = [set(RunScenes(run).names()) for run in runs]
    assert set.union(*names) == set(PanelName)
    assert names[0] - names[1] == {PanelName.PICTURE, PanelName.HELD_OUT}
    assert names[1] - names[0] == {PanelName.LANDSCAPE}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA GPU here")
@pytest.mark.parametrize("name", tasks.names())
def test_every_panel_on_a_gpu(name: str) -> None:
    run = Run(tasks.get(name, device="cuda"), Recipe(amp="fp16", lr=0.01))
    run.watch_memory = True
    run.advance(updates=5)
    scenes = RunScenes(run)
    for panel in scenes.names():
        scenes.scene(panel)
    assert (scenes.memory().allocated or 0) > 0
