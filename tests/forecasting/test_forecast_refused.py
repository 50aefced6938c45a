"""What the forecast refuses, and how it says it: one sentence that names the thing and what to do."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import Recipe
from gradlab.forecasting import ForecastError, forecast, model_sizes
from gradlab.forecasting.estimate import largest_that_fits
from gradlab.forecasting.simulate import SimulatedUpdate
from gradlab.memory.timeline import CATEGORIES, MemoryPoint
from gradlab.tasks import Task

NAMES = ", ".join(map(repr, model_sizes()))


class Net(nn.Module):
    """A layer, and then whatever a test wants."""

    def __init__(self, then: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.then = nn.Linear(4, 4), then

    def forward(self, x: Tensor) -> Any:
        return self.then(self.layer(x))


def sample() -> tuple[Tensor, Tensor]:
    return torch.rand(3, 4), torch.rand(3, 4)


FAILURES: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "shapes": (lambda h: h @ torch.ones(7, 7), r"RuntimeError: .*\[3, 4\] X \[7, 7\]"),
    "a mistake": (lambda h: h / (1 // 0), "ZeroDivisionError"),
    "a string": (lambda h: "text", "TypeError: the model returns str .* give loss_fn="),
}


@pytest.mark.parametrize(
    "then", [lambda h: h * h.sum().detach().item(), lambda h: h if h.sum() > 0 else -h], ids=[".item()", "if"]
)
def test_a_model_that_asks_for_values_is_told_where_and_what_to_do(then: Callable[[Tensor], Any]) -> None:
    with pytest.raises(ForecastError, match=r"Net asks for a value .* at `output = model\(x\)`.*torch\.where") as told:
        forecast(Net(then), batch=sample())
    assert "in <lambda>() at test_forecast_refused.py:" in str(told.value)
    assert isinstance(told.value, ValueError)
    assert torch.ones(1).item() == 1  # no mode is left on


@pytest.mark.parametrize(
    "then", [lambda h: h * len(h.nonzero()), lambda h: h * h[h > 0].sum()], ids=["nonzero", "mask"]
)
def test_a_shape_that_depends_on_values_is_told(then: Callable[[Tensor], Any]) -> None:
    with pytest.raises(ForecastError, match=r"Net has a shape that depends on values .*torch\.where or a fixed number"):
        forecast(Net(then), batch=sample())


@pytest.mark.parametrize(("then", "said"), FAILURES.values(), ids=FAILURES)
def test_any_other_failure_is_told_in_one_line(
    then: Callable[[Tensor], Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ForecastError, match=rf"Net fails without memory: {said}.*Check that model\(x\)") as told:
        forecast(Net(then), batch=sample())
    assert len(str(told.value).splitlines()) == 1
    assert not caplog.records
    assert not logging.getLogger("torch._subclasses.fake_tensor").filters


def test_a_model_that_moves_itself_to_a_gpu_is_there_already() -> None:
    moves = forecast(Net(lambda h: h.to("cuda").cuda() + torch.ones(4, device="cuda:0")), batch=sample())
    stays = forecast(Net(lambda h: h + torch.ones(4)), batch=sample())
    assert moves.peak == stays.peak


def test_sparse_gradients_are_refused() -> None:
    model = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Flatten(), nn.Linear(12, 4))
    with pytest.raises(ForecastError, match=r"sparse gradients, whose size depends on values.*sparse=False"):
        forecast(model, batch=(torch.zeros(3, 3, dtype=torch.int64), torch.rand(3, 4)))


def test_a_builder_that_fails_is_told() -> None:
    def build(seed: int) -> nn.Module:
        raise RuntimeError("no such weights")

    with pytest.raises(ForecastError, match="mine fails without memory: RuntimeError: no such weights while it is bui"):
        forecast(Task("mine", build, [sample()], nn.functional.mse_loss))


def test_checkpointing_without_blocks_is_a_plain_error() -> None:
    with pytest.raises(ValueError, match="blocks that repeat, and Net has none") as told:
        forecast(Net(lambda h: h), batch=sample(), checkpoint=True)
    assert not isinstance(told.value, ForecastError)


@pytest.mark.parametrize("wrong", [0, -1, 2**40, True, 1.5, "4", (1, 2)])
def test_a_batch_must_be_a_whole_number(wrong: object) -> None:
    for what in ("digits", "llama-8b"):
        with pytest.raises((TypeError, ValueError), match=r"batch.* must be a whole number from 1 to 1,048,576, got"):
            forecast(what, batch=wrong)


NO_SAMPLES: list[Any] = [None, 4, (torch.rand(2),), (torch.rand(2), 1), "xy"]
CONTEXT = r"context of 'gpt2-1.5b' must be a whole number from 1 to 1,024"
SAMPLE = r"a module needs a sample batch, batch=\(x, y\), each a tensor .* got batch="
REFUSED: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    *((("gpt2-1.5b",), {"context": wrong}, CONTEXT) for wrong in (0, 1025, True, "all")),
    *(
        ((nn.Linear(2, 2),), {"batch": wrong}, SAMPLE)
        for wrong in (None, 4, (torch.rand(2),), (torch.rand(2), 1), "xy")
    ),
    (("llama-7b",), {}, f"the name must be one of {NAMES}, 'bowl', .* got 'llama-7b'"),
    ((3,), {}, f"a Task, the name of one, a torch.nn.Module with batch=.*{NAMES}, or update.*, got 3"),
    ((nn.Linear,), {}, "give a Task"),
    (("digits",), {"context": 4}, f"context is for the sizes {NAMES}, got context=4"),
    (("digits", {}), {}, "recipe must be a gradlab.Recipe, got {}"),
    (("digits", Recipe()), {"checkpoint": 1}, "checkpoint must be True or False, got 1"),
    (("digits",), {"device": "gpu"}, "device must be 'cpu', 'cuda' or None, got 'gpu'"),
    (("digits",), {"loss_fn": print}, "a task has a loss of its own"),
    (("llama-8b",), {"loss_fn": print}, "'llama-8b' has a loss of its own"),
    ((Net(lambda h: h),), {"batch": sample(), "loss_fn": 3}, "loss_fn must be a function"),
    ((nn.ReLU(),), {"batch": sample()}, "ReLU has no parameter that wants a gradient"),
    ((Net(lambda h: h),), {"batch": (torch.rand(0, 4), torch.rand(0, 4))}, "at least one row"),
]


@pytest.mark.parametrize(("what", "options", "said"), REFUSED)
def test_bad_input_is_named(what: tuple[Any, ...], options: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        forecast(*what, **options)


def test_questions_about_cards_and_switches_are_checked() -> None:
    found = forecast("bowl")
    with pytest.raises(ValueError, match="card must be one of T4, V100"):
        found.fits("T5")
    with pytest.raises(ValueError, match="the switch must be one of 'batch', 'window', 'context', got 'lr'"):
        found.largest("lr", on="T4")


def test_lines_take_a_handful_of_forecasts() -> None:
    asked: list[int] = []

    def at(n: int) -> SimulatedUpdate:
        asked.append(n)
        return made([1000, 30 * n, 500 + 7 * n])

    assert largest_that_fits(at, 123_456, 2**20, 1) == 4115
    assert asked == [1, 2, 4115, 4116]


def made(tops: list[int]) -> SimulatedUpdate:
    points = [MemoryPoint("step", "", {}, {**dict.fromkeys(CATEGORIES, 0), "other": top}) for top in tops]
    return SimulatedUpdate(max(tops), {}, points[0], points, 1, 1)


@pytest.mark.parametrize(
    "stretches",
    [
        lambda n: [100, 3 * n],  # the peak bends where the second stretch overtakes the first
        lambda n: [50 + n, 7 * n, 40 + 5 * n],
        lambda n: [n * n // 50],
        lambda n: [1000 if n > 77 else 5],  # a step
        lambda n: [10 + n // 100],
    ],
)
@pytest.mark.parametrize("limit", [5, 104, 999, 12_345])
@pytest.mark.parametrize("near", [1, 64])
def test_the_largest_is_found_in_few_steps(stretches: Callable[[int], list[int]], limit: int, near: int) -> None:
    asked: list[int] = []
    most = 100_000

    def at(n: int) -> SimulatedUpdate:
        asked.append(n)
        return made(stretches(n))

    answer = largest_that_fits(at, limit, most, near)
    fitting = [n for n in range(1, most + 1) if max(stretches(n)) <= limit]
    assert answer == (fitting[-1] if fitting else 0)
    assert len(asked) <= 30
    assert len(asked) == len(set(asked))
