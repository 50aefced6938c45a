"""The forecast against a real run: the same text on real tensors under a Ledger, byte for byte, point for point."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import Ledger, Recipe, tasks
from gradlab.forecasting import forecast, scaling
from gradlab.forecasting import simulate as simulate_module
from gradlab.forecasting.checkpointing import checkpoint_blocks
from gradlab.forecasting.scaling import simulate_blocks
from gradlab.forecasting.simulate import SimulatedUpdate, simulate
from gradlab.forecasting.sizes import ModelSize
from gradlab.forecasting.training import Training
from gradlab.forecasting.transformer import Decoder, next_token_loss
from gradlab.forecasting.workload import Workload, as_workload
from gradlab.loop import Program
from gradlab.memory import CATEGORIES, MemoryPoint, timeline

pytestmark = pytest.mark.slow

LLAMA = ModelSize("tiny-llama", "llama", 2, 32, 4, kv_heads=2, hidden=48, vocabulary=61, max_context=64)
GPT2 = ModelSize("tiny-gpt2", "gpt2", 2, 32, 4, 4, 128, 61, 16, tied=True, qkv_bias=True)


class Conv(nn.Module):
    """A conv net with BatchNorm and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (self._block(i, o) for i, o in ((3, 8), (8, 8)))
        self.head = nn.Linear(8 * 4 * 4, 10)

    def _block(self, i: int, o: int) -> nn.Sequential:
        parts = (nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        return nn.Sequential(*parts, nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.second(self.first(x)).flatten(1))


def tokens() -> tuple[Tensor, Tensor]:
    return torch.randint(0, 61, (2, 16)), torch.randint(0, 61, (2, 16))


# name -> (what, one sample or None for a task's own batches, loss)
SUBJECTS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "digits": lambda: (tasks.digits(device="cpu"), None, None),
    "conv": lambda: (Conv(), (torch.rand(4, 3, 16, 16), torch.randint(0, 10, (4,))), nn.functional.cross_entropy),
    "llama": lambda: (Decoder(LLAMA), tokens(), next_token_loss),
    "gpt2": lambda: (Decoder(GPT2), tokens(), next_token_loss),
}
SWITCHES = {
    "zero_grad": (True, False),
    "set_to_none": (True, False),
    "accumulate": (1, 2),
    "divide_loss": (True, False),
    "amp": ("off", "bf16", "fp16"),
    "clip": (None, 1.0),
    "optimizer": ("sgd", "momentum", "adam", "adamw"),
}


@functools.cache
def pairwise_trainings() -> list[Training]:
    """Recipes with and without checkpointing, few of them: any two values meet in one."""
    every = list(itertools.product(*SWITCHES.values(), (True, False)))
    pairs = [set(itertools.combinations(enumerate(values), 2)) for values in every]
    unmet, trainings = set().union(*pairs), []
    while unmet:
        best = max(range(len(every)), key=lambda i: len(pairs[i] & unmet))
        unmet -= pairs[best]
        *values, checkpoint = every[best]
        trainings.append(Training(Recipe(lr=1e-3, **dict(zip(SWITCHES, values, strict=True))), checkpoint))
    return trainings


def run_under_ledger(
    model: nn.Module, loss_fn: Any, batches: list[Any], epochs: int, training: Training, updates: int = 2
) -> Ledger:
    """A Ledger over the last of a real run's updates."""
    program = Program(training.source(batches[0]))
    names = {"torch": torch, "model": model, "loss_fn": loss_fn, "batches": batches, "device": "cpu", "epochs": epochs}
    for _ in program.setup(names):
        pass
    for group in names["optimizer"].param_groups if training.uses_foreach else ():
        group["foreach"] = True
    if "scaler" in names:
        names["scaler"] = torch.amp.GradScaler("cpu", init_scale=1.0)  # nothing overflows, as in a forecast
    ledger = Ledger(model, [names["optimizer"]], batches)
    ledger.current_statement = lambda: ""  # statements are named as they end
    last = len(program.statements) - 1
    with ledger:
        loop = program.loop(names)
        for index in loop:
            ledger.mark(program.statements[index].label)
            if index == last:
                updates -= 1
                if updates == 0:
                    break
                if updates == 1:
                    ledger.forget()
        loop.close()
    return ledger


def from_zero(points: list[MemoryPoint]) -> list[MemoryPoint]:
    points = [point for point in points if point.statement]
    return [dataclasses.replace(point, number=point.number - points[0].number) for point in points]


def assert_equal(update: SimulatedUpdate, ledger: Ledger) -> None:
    assert update.peak_at.top == ledger.peak
    assert update.peak_at.high == ledger.at_peak
    places = [(point.statement, point.module) for point in (update.peak_at, ledger.peak_at)]
    assert places[0] == places[1]
    assert from_zero(update.timeline) == from_zero(ledger.timeline)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_forecast_is_a_real_run_byte_for_byte(name: str) -> None:
    torch.manual_seed(0)
    what, sample, loss_fn = SUBJECTS[name]()
    workload = as_workload(what, sample, None, loss_fn)
    for i, training in enumerate(pairwise_trainings()[list(SUBJECTS).index(name) :: len(SUBJECTS)]):
        training = dataclasses.replace(training, checkpoint=training.checkpoint and name in ("llama", "gpt2"))
        update, window = simulate(workload, training), training.recipe.accumulate
        for updates in (2, 3) if sample is not None and i == 0 else (2,):
            model = what.build(0) if sample is None else copy.deepcopy(what)
            if training.checkpoint:
                checkpoint_blocks(model)
            batches = what.batches[: 2 * window] if sample is None else [sample] * window
            batches = [(x.clone(), y.clone()) for x, y in batches]
            ledger = run_under_ledger(model, workload.loss_fn, batches, 3, training, updates)
            assert_equal(update, ledger)


def published(size: ModelSize) -> Workload:
    """A workload as those of the published sizes, which are too large to be run in full."""
    return dataclasses.replace(as_workload(Decoder(size), tokens(), None, next_token_loss), size=size, batch=2)


@pytest.mark.nightly
@pytest.mark.parametrize("size", [LLAMA, GPT2], ids=lambda s: s.name)
def test_three_and_four_blocks_tell_of_any_number(size: ModelSize) -> None:
    deep = published(size).with_layers(5)
    training = pairwise_trainings()[3 if size is GPT2 else 8]  # with checkpointing; the test below is without
    assert simulate_blocks(deep, training) == simulate(deep, training)


def test_too_many_points_are_merged_as_by_a_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    deep, training = published(GPT2).with_layers(6), Training(device="cuda")
    monkeypatch.setattr(timeline, "MOST_POINTS", 200)
    monkeypatch.setattr(scaling, "MOST_POINTS", 200)
    whole = simulate(deep, training)
    assert 100 <= len(whole.timeline) < 200
    assert simulate_blocks(deep, training) == whole


@pytest.mark.parametrize(("zero_grad", "set_to_none"), [(True, True), (True, False), (False, True)])
def test_the_window_of_a_large_model_is_cut_and_the_peak_stays(
    zero_grad: bool, set_to_none: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = published(LLAMA).with_layers(1)
    recipe = Recipe(accumulate=5, optimizer="adamw", amp="bf16", zero_grad=zero_grad, set_to_none=set_to_none)
    whole = simulate(workload, Training(recipe, device="cuda"))
    monkeypatch.setattr(simulate_module, "LARGE", 1)
    cut = simulate(workload, Training(recipe, device="cuda"))
    assert [sum(p.statement == "x, y" for p in each.timeline) for each in (whole, cut)] == [5, 3]
    assert cut.peak_at.high == whole.peak_at.high


def test_a_billion_parameters_under_amp_take_sixteen_bytes_each() -> None:
    """ZeRO (arXiv 1910.02054), section 3.1: 24 GB of model states for 1.5 billion parameters with mixed precision."""
    result = forecast("gpt2-1.5b", Recipe(amp="bf16", optimizer="adamw"))
    states = sum(result.at_peak[name] for name in ("weights", "gradients", "optimizer"))
    tensors = 4 + 48 * 16  # embeddings and the last norm; 4 norm, 8 attention and 4 MLP tensors a layer
    assert result.parameters == 1_557_611_200
    assert states == 16 * result.parameters + 4 * tensors  # Adam counts its steps in 4 bytes a tensor
    assert states / result.parameters * 1.5e9 == pytest.approx(24e9, rel=1e-4)
    logits = 1024 * 50_257
    assert max(point.high["activations"] for point in result.timeline) > 4 * logits  # their logarithms are in float32
    assert {p.statement for p in result.timeline} == {"for", "x, y", "zero_grad", "autocast", "backward", "step"}
    assert any(p.module == "blocks.47.mlp.up" for p in result.timeline if p.statement == "backward")


def test_a_card_has_room_for_exactly_what_it_holds() -> None:
    result = forecast("digits", Recipe(optimizer="adam"), device="cuda")
    need = result.need()
    assert result.fits(need.total)
    assert not result.fits(need.total - 1)
    assert need.tensors == result.peak
    assert result.at_peak.keys() == set(CATEGORIES)
    assert sum(result.at_peak.values()) == result.peak == result.peak_at.top == max(p.top for p in result.timeline)
    for text in ("digits, batch 64", "17,226 parameters", "weights", "T4", "fits", "reserved", "CUDA's context"):
        assert text in repr(result)


def test_a_card_means_cuda_unless_the_cpu_was_asked_for() -> None:
    implied, cuda, cpu = (forecast("digits", Recipe(optimizer="adam"), device=d) for d in (None, "cuda", "cpu"))
    assert implied.device == "cpu"
    assert implied.need("T4").tensors == cuda.need("T4").tensors == cuda.peak > cpu.peak == cpu.need("T4").tensors
    assert "by the rules of a CPU" in repr(cpu)
    assert "the rules of a CPU, which are not those of a GPU" in cpu.covers


def test_the_largest_batch_fits_and_the_next_does_not() -> None:
    recipe = Recipe(accumulate=2, optimizer="adamw", amp="bf16")
    result = forecast("digits", recipe, batch=8)
    best = result.largest("batch", on=750_000_000)
    assert [forecast("digits", recipe, batch=n).fits(750_000_000) for n in (best, best + 1)] == [True, False]
    assert result.largest("batch", on=1000) == 0


def test_a_model_without_memory_is_as_good_as_one_with() -> None:
    with torch.device("meta"):
        model = Decoder(LLAMA)
    x = torch.empty(2, 16, dtype=torch.int64, device="meta")
    recipe = Recipe(optimizer="adamw", amp="bf16")
    real = forecast(Decoder(LLAMA), recipe, batch=tokens(), loss_fn=next_token_loss)
    assert forecast(model, recipe, batch=(x, x), loss_fn=next_token_loss) == real
