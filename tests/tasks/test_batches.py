"""Tasks whose batches are no pairs: a run, a forecast and the pictures against plain PyTorch."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import Lab, Recipe, Run, watch
from gradlab.forecasting import forecast
from gradlab.forecasting.simulate import ForecastError
from gradlab.forecasting.training import Training
from gradlab.scenes import PanelName, RunScenes
from gradlab.tasks import Task, TwoWeights
from tests.forecasting.test_forecast import run_under_ledger


class Net(nn.Module):
    """Two layers and dropout; it reads as many tensors as it is given, and adds them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 6))

    def forward(self, *parts: Tensor, **named: Tensor) -> Tensor:
        return self.layers(sum((*parts, *named.values())))


def difference(output: Tensor, batch: Any) -> Tensor:
    parts = list(batch.values()) if isinstance(batch, dict) else [batch] if isinstance(batch, Tensor) else batch
    return (output - parts[0][:, : output.shape[1]]).square().mean()


def tensors(count: int) -> list[Tensor]:
    return [torch.randn(4, 6, generator=torch.Generator().manual_seed(i)) for i in range(count)]


KINDS: dict[str, list[Any]] = {
    "dict": [{"x": x, "mask": x.abs()} for x in tensors(5)],
    "tuple": [(x, x.abs(), x / 2) for x in tensors(5)],
    "one": [[x] for x in tensors(5)],
    "tensor": tensors(5),
}
LINES = {"dict": "model(**batch)", "tuple": "model(*batch)", "one": "model(*batch)", "tensor": "model(batch)"}
KIND = pytest.mark.parametrize("kind", KINDS)


def make_task(kind: str) -> Task:
    return Task("mine", lambda seed: Net(), KINDS[kind], difference)


@KIND
@pytest.mark.parametrize("recipe", [Recipe(lr=0.01), Recipe(accumulate=2, amp="bf16", optimizer="adam")], ids=str)
def test_the_text_run_plainly_gives_the_same_weights(kind: str, recipe: Recipe) -> None:
    run = Run(make_task(kind), recipe, seed=3)
    run.advance(updates=2 * len(range(0, 5, recipe.accumulate)))
    torch.manual_seed(3)
    model = Net()
    names = {"torch": torch, "model": model, "loss_fn": difference, "batches": KINDS[kind], "device": "cpu"}
    torch.manual_seed(3)  # the loop draws its dropout from the seed, as README says
    exec(run.source, names | {"epochs": 2})
    assert all(weight.isfinite().all() for weight in model.parameters())
    assert f"output = {LINES[kind]}\n" in run.source
    assert "loss = loss_fn(output, batch)\n" in run.source
    assert all(torch.equal(a, b) for a, b in zip(run.model.parameters(), model.parameters(), strict=True))


@KIND
def test_a_forecast_is_what_a_ledger_counts(kind: str) -> None:
    task, recipe = make_task(kind), Recipe(optimizer="adam")
    ledger = run_under_ledger(task.build(), difference, KINDS[kind][:2], 1, Training(recipe))
    predicted = forecast(task, recipe, device="cpu")
    assert (predicted.peak, predicted.at_peak) == (ledger.peak, ledger.at_peak)


@KIND
def test_the_line_that_a_forecast_quotes_is_the_one_that_ran(kind: str) -> None:
    def build(seed: int) -> nn.Module:
        net = Net()
        net.layers.append(nn.Linear(7, 7))
        return net

    with pytest.raises(ForecastError) as refused:
        forecast(Task("mine", build, KINDS[kind], difference))
    assert f" at `output = {LINES[kind]}`" in str(refused.value)
    assert f"Check that {LINES[kind]} and loss_fn(output, batch) run" in str(refused.value)


@pytest.mark.parametrize("x", [{"a": tensors(1)[0], "flag": None}, tuple(tensors(2))], ids=["dict", "tuple"])
def test_nested_x_of_a_module_is_quoted_as_it_ran(x: Any) -> None:
    class Broken(Net):
        def forward(self, *parts: Tensor, **named: Any) -> Tensor:
            return self.layers(torch.ones(2, 7))

    quoted = rf"at `output = model\({'[*][*]' if isinstance(x, dict) else '[*]'}x\)`"
    with pytest.raises(ForecastError, match=quoted):
        forecast(Broken(), batch=(x, tensors(1)[0]))


@pytest.mark.slow
@KIND
def test_the_lab_its_pictures_and_the_doctor_take_them(kind: str, tmp_path: Path) -> None:
    task = make_task(kind)
    lab = Lab(task, Recipe(lr=0.01))
    lab.run(updates=3)
    lab.save(tmp_path / "lab.png")
    assert (tmp_path / "lab.png").stat().st_size > 1000
    names = {"torch": torch, "model": task.build(), "loss_fn": difference, "batches": task.batches}
    with watch() as report:
        exec(Recipe(lr=0.01).source(task.batches[0]), names | {"device": "cpu", "epochs": 4})
    assert not report.findings


@KIND
def test_two_weights_have_contours(kind: str) -> None:
    class Line(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 1, bias=False)

        def forward(self, *parts: Tensor, **named: Tensor) -> Tensor:
            return self.layer(sum((*parts, *named.values()))[:, :2])

    run = Run(Task("mine", lambda seed: Line(), KINDS[kind], difference, picture=TwoWeights()), Recipe(lr=0.01))
    run.advance(updates=5)  # the newest batch is the last one
    contours = RunScenes(run).scene(PanelName.LANDSCAPE).contours
    w = torch.tensor([[contours.x[5], contours.y[9]]])
    losses = [run.task.loss_of(lambda *p, **n: sum((*p, *n.values()))[:, :2] @ w.T, b) for b in KINDS[kind]]
    assert contours.loss[9][5] == pytest.approx(sum(loss.item() for loss in losses) / 5, rel=1e-4)


@KIND
def test_a_loop_that_changes_a_batch_leaves_the_data_as_they_are(kind: str) -> None:
    def doubling(output: Tensor, batch: Any) -> Tensor:
        for part in batch.values() if isinstance(batch, dict) else [batch] if isinstance(batch, Tensor) else batch:
            part.data.mul_(2)
        return output.square().mean()

    task = Task("mine", lambda seed: Net(), KINDS[kind], doubling)
    before = copy.deepcopy(task.batches)
    Run(task).advance(updates=2)
    torch.testing.assert_close(task.batches, before, rtol=0, atol=0)
