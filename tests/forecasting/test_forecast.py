"""The forecast against a real run: the same text on real tensors under a Ledger, byte for byte, point for point."""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import itertools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import Recipe, tasks
from gradlab.forecasting import Forecast, extrapolate, forecast
from gradlab.forecasting import simulate as simulate_module
from gradlab.forecasting.checkpointing import checkpointing
from gradlab.forecasting.extrapolate import simulate_blocks
from gradlab.forecasting.simulate import SimulatedUpdate, simulate
from gradlab.forecasting.sizes import ModelSize
from gradlab.forecasting.training import Training
from gradlab.forecasting.transformer import Decoder, next_token_loss
from gradlab.forecasting.workload import Workload, as_workload
from gradlab.loop.program import Program
from gradlab.memory import timeline
from gradlab.memory.ledger import Ledger
from gradlab.memory.timeline import CATEGORIES, MemoryPoint

LLAMA = ModelSize("tiny-llama", "llama", 2, 32, 4, kv_heads=2, hidden=48, vocabulary=61, max_context=64)
GPT2 = ModelSize("tiny-gpt2", "gpt2", 2, 32, 4, kv_heads=4, hidden=128, vocabulary=61, max_context=16)


class Conv(nn.Module):
    """A conv net with BatchNorm and dropout, in two blocks of a kind."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (self._block(i, o) for i, o in ((3, 8), (8, 8)))
        self.head = nn.Linear(8 * 4 * 4, 10)

    def _block(self, i: int, o: int) -> nn.Sequential:
        parts = (nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        return nn.Sequential(*parts, nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.second(self.first(x)).flatten(1))


class Seeding(nn.Module):
    """Sets the seed in its forward, as some do for their noise."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        torch.manual_seed(7)
        return self.layer(x) + torch.randn_like(x)


def tokens() -> tuple[Tensor, Tensor]:
    return torch.randint(0, 61, (2, 16)), torch.randint(0, 61, (2, 16))


# name -> (what, one sample or None for a task's own batches, loss)
SUBJECTS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "digits": lambda: (tasks.digits(device="cpu"), None, None),
    "text": lambda: (tasks.text(batch=4, device="cpu"), None, None),
    "conv": lambda: (
        Conv(),
        (torch.rand(4, 3, 16, 16), torch.randint(0, 10, (4,))),
        nn.functional.cross_entropy,
    ),
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
def covering() -> list[Training]:
    """Recipe, checkpointing and how the optimizer runs, few of them: any two values meet in one."""
    every = list(itertools.product(*SWITCHES.values(), (True, False), (None, "foreach")))
    pairs = [set(itertools.combinations(enumerate(values), 2)) for values in every]
    unmet, chosen = set().union(*pairs), []
    while unmet:
        best = max(range(len(every)), key=lambda at: len(pairs[at] & unmet))
        unmet -= pairs[best]
        *values, checkpoint, way = every[best]
        recipe = Recipe(lr=1e-3, **dict(zip(SWITCHES, values, strict=True)))
        chosen.append(Training(recipe, checkpoint, optimizer=way))
    return chosen


def hand(deal: int, deals: int, *, checkpoint: bool = True) -> list[Training]:
    """One of several hands of them."""
    return [dataclasses.replace(s, checkpoint=s.checkpoint and checkpoint) for s in covering()[deal::deals]]


def batches_of(what: Any, sample: Any, window: int) -> tuple[list[Any], int]:
    """Real batches for the same updates, and the epochs."""
    if sample is None:
        return [(x.clone(), y.clone()) for x, y in what.batches[: 2 * window]], 2
    return [(sample[0].clone(), sample[1].clone()) for _ in range(window)], 3


def lived(
    model: nn.Module, loss_fn: Any, batches: list[Any], epochs: int, recipe: Recipe, updates: int, *, at_once: bool
) -> Ledger:
    """A Ledger over the last of a real run's updates."""
    program = Program(recipe.source())
    names = {"torch": torch, "model": model, "loss_fn": loss_fn, "batches": batches, "device": "cpu", "epochs": epochs}
    for _ in program.setup(names):
        pass
    if at_once:
        for group in names["optimizer"].param_groups:
            group["foreach"] = True
    if "scaler" in names:
        names["scaler"] = torch.amp.GradScaler("cpu", init_scale=1.0)  # nothing overflows, as in a forecast
    ledger = Ledger(model, [names["optimizer"]], batches)
    ledger.place = lambda: ""  # statements are named as they end
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


def told(points: list[MemoryPoint]) -> list[MemoryPoint]:
    points = [point for point in points if point.statement]
    return [dataclasses.replace(point, number=point.number - points[0].number) for point in points]


def assert_equal(forecast_scene: SimulatedUpdate | Forecast, ledger: Ledger) -> None:
    assert forecast_scene.peak == ledger.peak
    assert forecast_scene.at_peak == ledger.at_peak
    assert (forecast_scene.peak_at.statement, forecast_scene.peak_at.module) == (
        ledger.peak_at.statement,
        ledger.peak_at.module,
    )
    assert told(forecast_scene.timeline) == told(ledger.timeline)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_forecast_is_a_real_run_byte_for_byte(name: str) -> None:
    torch.manual_seed(0)
    what, sample, loss_fn = SUBJECTS[name]()
    about = as_workload(what, sample, None, loss_fn)
    deal = list(SUBJECTS).index(name)
    for at, training in enumerate(hand(deal, len(SUBJECTS), checkpoint=name != "conv")):
        forecast_scene, recipe = simulate(about, training), training.recipe
        batches, epochs = batches_of(what, sample, recipe.accumulate)
        for updates in (2, 3) if sample is not None and at == 0 else (2,):
            model = what.build(0) if sample is None else copy.deepcopy(what)
            with checkpointing(model) if training.checkpoint else nullcontext():
                ledger = lived(model, about.loss_fn, batches, epochs, recipe, updates, at_once=training.at_once)
            assert_equal(forecast_scene, ledger)


def published(size: ModelSize) -> Workload:
    """A workload as those of the published sizes, which are too large to be run in full."""
    about = as_workload(Decoder(size), tokens(), None, next_token_loss)
    return dataclasses.replace(about, size=size, batch=2)


@pytest.mark.slow
@pytest.mark.parametrize("size", [LLAMA, GPT2], ids=lambda s: s.name)
def test_putting_the_state_of_a_first_update_in_place_is_running_it(size: ModelSize) -> None:
    about = published(size)
    for training in hand(size is GPT2, 4):
        whole, primed = (simulate(about, training, skip_first_update=skip) for skip in (False, True))
        assert primed == whole


@pytest.mark.slow
@pytest.mark.parametrize("size", [LLAMA, GPT2], ids=lambda s: s.name)
def test_three_and_four_blocks_tell_how_any_number_of_them_would_do(size: ModelSize) -> None:
    deep = published(size).with_layers(6)
    for training in hand(size is GPT2, 5):
        assert simulate_blocks(deep, training) == simulate(deep, training)


def test_neighbours_are_merged_as_a_ledger_does_where_there_are_too_many_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deep = published(GPT2).with_layers(6)
    monkeypatch.setattr(timeline, "MOST_POINTS", 200)
    monkeypatch.setattr(extrapolate, "MOST_POINTS", 200)
    whole = simulate(deep, Training(Recipe(), device="cuda"))
    assert 100 <= len(whole.timeline) < 200
    assert simulate_blocks(deep, Training(Recipe(), device="cuda")) == whole


@pytest.mark.parametrize(("zero_grad", "set_to_none"), [(True, True), (True, False), (False, True)])
def test_only_the_window_of_a_large_model_is_cut_and_the_peak_stays(
    zero_grad: bool, set_to_none: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = published(LLAMA).with_layers(1)
    recipe = Recipe(accumulate=5, optimizer="adamw", amp="bf16", zero_grad=zero_grad, set_to_none=set_to_none)
    whole = simulate(about, Training(recipe, device="cuda"))
    assert whole.micro_batches == 5
    monkeypatch.setattr(simulate_module, "LARGE", 1)
    cut = simulate(about, Training(recipe, device="cuda"))
    assert cut.micro_batches == 3
    assert (cut.peak, cut.at_peak) == (whole.peak, whole.at_peak)
    assert max(p.top for p in cut.timeline if p.number > 1) <= whole.peak


def test_a_billion_parameters_under_amp_take_sixteen_bytes_each() -> None:
    """ZeRO (arXiv 1910.02054), section 3.1: 24 GB of model states for 1.5 billion parameters with mixed precision."""
    found = forecast("gpt2-1.5b", Recipe(amp="bf16", optimizer="adamw"))
    states = sum(found.at_peak[name] for name in ("weights", "gradients", "optimizer"))
    tensors = 4 + 48 * 16  # embeddings and the last norm; 4 norm, 8 attention and 4 MLP tensors a layer
    assert found.parameters == 1_557_611_200
    assert states == 16 * found.parameters + 4 * tensors  # Adam counts its steps in 4 bytes a tensor
    assert round(states / 1e9) == 25
    assert states / found.parameters * 1.5e9 == pytest.approx(24e9, rel=1e-4)
    logits = 1024 * 50_257
    assert max(point.high["activations"] for point in found.timeline) > 4 * logits  # their logarithms are in float32
    assert {p.statement for p in found.timeline} == {"for", "x, y", "zero_grad", "autocast", "backward", "step"}
    assert any(p.module == "blocks.47.mlp.up" for p in found.timeline if p.statement == "backward")


def test_a_card_has_room_for_exactly_what_it_holds() -> None:
    found = forecast("digits", Recipe(optimizer="adam"), device="cuda")
    need = found.need()
    assert found.fits(need.total)
    assert not found.fits(need.total - 1)
    assert need.tensors == found.peak
    assert need.allocated == found.peak + 2 * 8_519_680
    assert need.reserved == pytest.approx(1.15 * need.allocated, abs=1)
    assert need.total - need.reserved == 650_000_000
    assert found.need("H100").workspaces == 2 * 32 * 1024**2
    assert forecast("digits", Recipe(optimizer="adam"), margin=0).need().reserved == found.need().allocated
    assert found.fits("T4")
    assert found.at_peak.keys() == set(CATEGORIES)
    assert sum(found.at_peak.values()) == found.peak == found.peak_at.top == max(p.top for p in found.timeline)
    for word in ("digits, batch 64", "17,226 parameters", "weights", "T4", "fits", "reserved", "CUDA's context"):
        assert word in repr(found)


def test_a_card_means_cuda_unless_the_cpu_was_asked_for() -> None:
    implied, cuda, cpu = (forecast("digits", Recipe(optimizer="adam"), device=d) for d in (None, "cuda", "cpu"))
    assert implied.device == "cpu"
    assert implied.need("T4").tensors == cuda.need("T4").tensors == cuda.peak > cpu.peak == cpu.need("T4").tensors
    assert "by the rules of a CPU" in repr(cpu)
    assert "the rules of a CPU, which are not those of a GPU" in cpu.covers


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [Recipe(), Recipe(accumulate=2, optimizer="adamw", amp="bf16")])
def test_the_largest_batch_fits_and_the_next_does_not(recipe: Recipe) -> None:
    found = forecast("digits", recipe, batch=8)
    for card in (found.need().total, 750_000_000):
        best = found.largest("batch", on=card)
        assert forecast("digits", recipe, batch=best).fits(card)
        assert not forecast("digits", recipe, batch=best + 1).fits(card)
    assert found.largest("batch", on=1000) == 0
    assert len(found._variants.known) <= 12  # for three searches


@pytest.mark.slow
def test_the_largest_window_is_one_or_all_of_them() -> None:
    recipe = Recipe(set_to_none=True)
    one, two = (forecast("digits", recipe.replace(accumulate=n), batch=64) for n in (1, 2))
    assert one.peak < two.peak
    assert one.largest("window", on=one.need().total) == 1
    assert one.largest("window", on="T4") == 16
    assert one.largest("window", on=one.need().total - 1) == 0
    assert two.largest("window", on=two.need().total - 1) == 1


@pytest.mark.slow
def test_the_largest_context_of_a_size_fits_and_the_next_does_not() -> None:
    recipe = Recipe(optimizer="adamw", amp="bf16")
    found = forecast("gpt2", recipe, batch=16)
    best = found.largest("context", on="8 GB")
    assert 1 < best < 1024
    fits = [forecast("gpt2", recipe, batch=16, context=n).fits("8 GB") for n in (best, best + 1)]
    assert fits == [True, False]


def test_a_bar_is_full_at_the_end_and_stays_short_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    estimate, bars = importlib.import_module("gradlab.forecasting.estimate"), []
    make = estimate.progress_bar
    monkeypatch.setattr(estimate, "progress_bar", lambda *given, **more: bars.append(make(*given, **more)) or bars[-1])
    with estimate.progress("short") as on_calls:
        on_calls(30, 100)
    with pytest.raises(ZeroDivisionError), estimate.progress("stopped") as on_calls:
        on_calls(1 // 0, 100)
    assert [bar.n for bar in bars] == [100, 0]


def test_nothing_of_the_callers_is_touched() -> None:
    model, sample = Conv().eval(), (torch.rand(4, 3, 16, 16), torch.randint(0, 10, (4,)))
    model.head.weight.grad = torch.ones_like(model.head.weight)
    before = copy.deepcopy(model.state_dict())
    grad, attributes = model.head.weight.grad, {n: set(vars(m)) for n, m in model.named_modules()}
    decoder, other = Decoder(LLAMA), tokens()
    seeding = Seeding()
    rng = torch.get_rng_state()
    forecast(model, batch=sample)
    forecast(decoder, batch=other, checkpoint=True)
    forecast("text", Recipe(amp="fp16"))
    forecast(seeding, batch=(torch.ones(2, 4), torch.ones(2, 4)))
    assert torch.equal(rng, torch.get_rng_state())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model.head.weight.grad is grad
    assert not model.training
    assert {n: set(vars(m)) for n, m in model.named_modules()} == attributes
    assert not any("forward" in vars(m) for m in decoder.modules())
    assert not torch.nn.modules.module._global_forward_hooks
    assert type(torch.ones(2)) is Tensor


def test_a_model_without_memory_is_as_good_as_one_with() -> None:
    with torch.device("meta"):
        model = Decoder(LLAMA)
    x = torch.empty(2, 16, dtype=torch.int64, device="meta")
    recipe = Recipe(optimizer="adamw", amp="bf16")
    real = forecast(Decoder(LLAMA), recipe, batch=tokens(), loss_fn=next_token_loss)
    assert forecast(model, recipe, batch=(x, x), loss_fn=next_token_loss) == real
