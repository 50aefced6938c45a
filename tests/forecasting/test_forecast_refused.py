"""Errors of the forecast: one sentence that names the fault and the remedy."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import Recipe
from gradlab.forecasting import ForecastError, forecast
from gradlab.forecasting.estimate import largest_that_fits
from gradlab.tasks import Task


class Net(nn.Module):
    """A layer, and then whatever a test wants."""

    def __init__(self, then: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.then = nn.Linear(4, 4), then

    def forward(self, x: Tensor) -> Any:
        return self.then(self.layer(x))


def sample() -> tuple[Tensor, Tensor]:
    return torch.rand(3, 4), torch.rand(3, 4)


VALUE = r"Net reads a value .* at `output = model\(x\)`, in <lambda>\(\) at test_forecast_refused.py:.*torch\.where"
SHAPE = r"Net computes a shape that depends on values .*torch\.where or a fixed number"
FAILS = r"Net fails on fake tensors, which have no data: {}.*Check that model\(x\)"
FAILURES: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    ".item()": (lambda h: h * h.sum().detach().item(), VALUE),
    "if": (lambda h: h if h.sum() > 0 else -h, VALUE),
    "nonzero": (lambda h: h * len(h.nonzero()), SHAPE),
    "mask": (lambda h: h * h[h > 0].sum(), SHAPE),
    "shapes": (lambda h: h @ torch.ones(7, 7), FAILS.format(r"RuntimeError: .*\[3, 4\] X \[7, 7\]")),
    "a GPU": (lambda h: h.to("cuda") + torch.ones(4), r"remove \.cuda\(\) and \.to\('cuda'\)"),
    "its own GPU": (lambda h: h + torch.ones(4, device="cuda:0"), r"remove \.cuda\(\) and \.to\('cuda'\)"),
    "a mistake": (lambda h: h / (1 // 0), FAILS.format("ZeroDivisionError")),
    "a string": (lambda h: "text", FAILS.format("TypeError: the model returns str .* pass loss_fn=")),
}


@pytest.mark.parametrize(("then", "message"), FAILURES.values(), ids=FAILURES)
def test_a_model_that_cannot_run_is_told_in_one_line(
    then: Callable[[Tensor], Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ForecastError, match=message) as refusal:
        forecast(Net(then), batch=sample())
    assert len(str(refusal.value).splitlines()) == 1
    assert isinstance(refusal.value, ValueError)
    assert torch.ones(1).item() == 1  # no mode is left on
    assert not caplog.records
    assert not logging.getLogger("torch._subclasses.fake_tensor").filters


def test_sparse_gradients_are_refused() -> None:
    model = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Flatten(), nn.Linear(12, 4))
    with pytest.raises(ForecastError, match=r"sparse gradients, whose size depends on values.*sparse=False"):
        forecast(model, batch=(torch.zeros(3, 3, dtype=torch.int64), torch.rand(3, 4)))


def test_a_builder_that_fails_is_told() -> None:
    def build(seed: int) -> nn.Module:
        raise RuntimeError("no such weights")

    with pytest.raises(
        ForecastError,
        match="mine fails on fake tensors, which have no data: RuntimeError: no such weights while it is bui",
    ):
        forecast(Task("mine", build, [sample()], nn.functional.mse_loss))


def test_a_lazy_layer_of_a_task_is_told() -> None:
    task = Task("mine", lambda seed: nn.LazyLinear(4), [sample()], nn.functional.mse_loss)
    with pytest.raises(ForecastError, match=r"^forecast: mine has a lazy layer, .* as for nn.Linear$"):
        forecast(task)


BATCH = "batch.* must be a whole number from 1 to 1,048,576, got"
CONTEXT = r"context of 'gpt2-1.5b' must be a whole number from 1 to 1,024"
SAMPLE = r"a module needs a sample batch \(x, y\) of tensors, .* got batch="
NET = Net(lambda h: h)
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    *((what, {"batch": wrong}, BATCH) for what in ("digits", "llama-8b") for wrong in (0, 2**40, True, 1.5, "4")),
    *(("gpt2-1.5b", {"context": wrong}, CONTEXT) for wrong in (0, 1025, True, "all")),
    *((nn.Linear(2, 2), {"batch": wrong}, SAMPLE) for wrong in (None, 4, (torch.rand(2),), (torch.rand(2), 1), "xy")),
    ("lama-8b", {}, "no size or task 'lama-8b'; did you mean 'llama-8b'.; `gradlab forecast --help` lists"),
    (3, {}, r"what must be a Task, a task's name, .* or a published size such as 'llama-8b', got 3"),
    ("digits", {"context": 4}, "context is for published sizes such as 'llama-8b', got context=4"),
    ("digits", {"recipe": {}}, "recipe must be a gradlab.Recipe, got {}"),
    ("digits", {"checkpoint": 1}, "checkpoint must be True or False, got 1"),
    ("digits", {"device": "gpu"}, "device must be one of 'cpu', 'cuda', got 'gpu'"),
    ("digits", {"dtype": "float16"}, "dtype must be one of 'fp32', 'bf16', 'fp16', got 'float16'"),
    ("digits", {"optimizer": "fused"}, "optimizer must be one of 'adamw-8bit', got 'fused'"),
    ("digits", {"shard": "zero4", "cards": 2}, "shard must be one of 'ddp', .*got 'zero4'"),
    ("digits", {"cards": 2}, "cards=2 needs shard, one of 'ddp'"),
    ("digits", {"cards": 0, "shard": "ddp"}, "cards must be a whole number from 1"),
    *((what, {"loss_fn": print}, "a size or a task has its own loss") for what in ("digits", "llama-8b")),
    (NET, {"batch": sample(), "loss_fn": 3}, "loss_fn must be a function"),
    (nn.ReLU(), {"batch": sample()}, "ReLU has no parameter that requires grad"),
    (NET, {"batch": (torch.rand(0, 4), torch.rand(0, 4))}, "at least one row"),
    (NET, {"batch": sample(), "checkpoint": True}, "^checkpointing needs repeated blocks, and Net has none"),
]


@pytest.mark.parametrize(("what", "options", "message"), REFUSED, ids=map(str, range(len(REFUSED))))
def test_bad_input_is_named(what: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        forecast(what, **options)


def test_questions_about_cards_and_switches_are_checked() -> None:
    result = forecast("bowl", Recipe())
    with pytest.raises(ValueError, match="card must be one of T4, V100"):
        result.fits("T5")
    with pytest.raises(ValueError, match="the switch must be 'batch', got 'lr'"):
        result.largest("lr", on="T4")


PEAKS: list[Callable[[int], int]] = [
    lambda n: max(100, 3 * n),  # it bends where the second line overtakes the first
    lambda n: max(50 + n, 7 * n, 40 + 5 * n),
    lambda n: n * n // 50,
    lambda n: 1000 if n > 77 else 5,
    lambda n: 10 + n // 100,
]


@pytest.mark.parametrize("peak_of", PEAKS)
def test_the_largest_is_found_in_few_steps(peak_of: Callable[[int], int]) -> None:
    peaks = [peak_of(n) for n in range(100_001)]
    for limit in (5, 999, 12_345):
        expected = max((n for n in range(1, 100_001) if peaks[n] <= limit), default=0)
        for start in (1, 64):
            calls: list[int] = []
            largest = largest_that_fits(lambda n, calls=calls: calls.append(n) or peaks[n], limit, 100_000, start)
            assert largest == expected
            assert len(calls) == len(set(calls)) <= 30
