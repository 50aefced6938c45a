"""A forecast's arguments beside its model: against real runs of the same text, and against published arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from gradlab import Recipe
from gradlab.forecasting import forecast
from gradlab.forecasting.scaling import SHARDINGS, share_of_one_card
from gradlab.forecasting.simulate import SimulatedUpdate, simulate
from gradlab.forecasting.training import Training
from gradlab.forecasting.workload import as_workload
from gradlab.memory import CATEGORIES, MemoryPoint
from tests.forecasting.test_forecast import assert_equal, run_under_ledger

F = nn.functional
ADAMW = Recipe(optimizer="adamw", lr=1e-3)


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 64))


def pair(rows: int = 4, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    return torch.rand(rows, 64).to(dtype), torch.rand(rows, 64).to(dtype)


# what differs -> (the training, what a real model needs for the same)
TRAININGS: dict[str, tuple[Training, Callable[[nn.Module], nn.Module]]] = {
    "one parameter after another": (Training(ADAMW), lambda model: model),
    "all parameters at once": (Training(ADAMW, device="cuda"), lambda model: model),
    "bf16 weights": (Training(ADAMW, dtype="bf16"), lambda model: model.bfloat16()),
    "fp16 weights": (Training(ADAMW, dtype="fp16"), lambda model: model.half()),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_an_argument_does_what_the_same_text_does(name: str) -> None:
    training, convert = TRAININGS[name]
    model = convert(net())
    batch = pair(dtype=next(model.parameters()).dtype)
    ledger = run_under_ledger(model, F.mse_loss, [batch], 2, training)
    assert_equal(simulate(as_workload(net(), pair(), None, F.mse_loss), training), ledger)


@pytest.mark.slow
def test_eight_bit_states_take_what_was_published() -> None:
    """bitsandbytes: two bytes and 2 x 4 / 256 an element; eight bytes for tensors below 4,096 elements."""
    small = forecast(net(), ADAMW, batch=pair(), optimizer="adamw-8bit")
    sizes = [p.numel() for p in net().parameters()]
    expected = sum(2 * n + 8 * -(-n // 256) if n >= 4096 else 8 * n for n in sizes)
    assert small.at_peak["optimizer"] == expected
    assert "adamw-8bit, AMP off" in small.title
    assert "The optimizer updates" not in small.covers
    large = forecast("llama-1b", ADAMW, optimizer="adamw-8bit", dtype="bf16")
    assert large.at_peak["optimizer"] / large.parameters == pytest.approx(2.03125, rel=1e-3)


@pytest.mark.parametrize(("device", "order"), [("cuda", "all parameters at once"), ("cpu", "one parameter after anot")])
def test_it_tells_how_the_optimizer_runs(device: str, order: str) -> None:
    assert f"The optimizer updates {order}" in forecast(net(), ADAMW, batch=pair(), device=device).covers


def test_a_batch_of_any_structure() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(4, 8)

        def forward(self, left: Tensor, right: Tensor, scale: float = 1.0) -> Tensor:
            return (self.a(left) + self.b(right)) * scale

    left, right, y = torch.rand(5, 8), torch.rand(5, 4), torch.rand(5, 8)
    by_name = forecast(Two(), batch=({"left": left, "right": right, "scale": 2.0}, y))
    in_order = forecast(Two(), batch=((left, right), y))
    assert by_name.peak == in_order.peak
    assert "batch 5" in by_name.title
    assert by_name.largest("batch", on=1_000_000_000) == in_order.largest("batch", on=1_000_000_000) > 5


def test_a_model_that_computes_its_own_loss() -> None:
    class Output(dict):  # type: ignore[type-arg]  # as transformers' ModelOutput
        pass

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 3)

        def forward(self, inputs: Tensor, labels: Tensor | None = None) -> Output:
            scores = self.layer(inputs)
            return Output(logits=scores, **({} if labels is None else {"loss": F.cross_entropy(scores, labels)}))

    x, y = torch.rand(5, 8), torch.randint(0, 3, (5,))
    result = forecast(Own(), batch={"inputs": x, "labels": y})
    assert max(p.high["gradients"] for p in result.timeline) == 4 * (8 * 3 + 3)
    with pytest.raises(ValueError, match=r"the model returns Output and y is FakeTensor.*pass loss_fn="):
        forecast(Own(), batch=({"inputs": x}, y))


def test_a_compiled_model_is_run_eagerly() -> None:
    whole, part, inner = torch.compile(net(), backend="eager"), net(), net()
    part[2].compile(backend="eager")
    inner[2] = torch.compile(inner[2], backend="eager")
    eager = forecast(net(), batch=pair())
    assert [forecast(model, batch=pair()) == eager for model in (whole, part, inner)] == [True] * 3


def test_one_card_of_many_holds_its_share() -> None:
    """The formulas, written once more, for an update in which weights, gradients and optimizer state are all alive."""
    recipe = ADAMW.replace(zero_grad=False)
    alone = forecast(net(), recipe, batch=pair(), device="cpu")
    w, g, o = (alone.at_peak[name] for name in ("weights", "gradients", "optimizer"))
    whole = 4 * sum(p.numel() for p in net().parameters())
    assert w == g == whole
    shares = {
        "ddp": w + g + o + whole,
        "zero1": w + g + o / 8,
        "zero2": w + g / 8 + o / 8,
        "zero3": w / 8 + g / 8 + o / 8 + 2 * whole,  # no block repeats: the whole is gathered
        "fsdp": w / 8 + g / 8 + o / 8 + 3 * whole,
    }
    assert set(shares) == set(SHARDINGS)
    rest = alone.peak - w - g - o
    for shard, share in shares.items():
        eight = forecast(net(), recipe, batch=pair(), device="cpu", shard=shard, cards=8)
        same = [p for p in eight.timeline if (p.number, p.module) == (alone.peak_at.number, alone.peak_at.module)]
        assert max(p.top for p in same) == pytest.approx(share + rest, abs=8 * 3)
        assert f"one of 8 cards with {shard}" in eight.title


@pytest.mark.parametrize(("shard", "gigabytes"), [(None, 120.0), ("zero1", 31.4), ("zero2", 16.6), ("zero3", 1.9)])
def test_zero_of_the_paper(shard: str | None, gigabytes: float) -> None:
    """ZeRO, figure 1: 7.5 billion parameters on 64 cards; 2 bytes are weights, 2 gradients and 12 the optimizer's."""
    psi = 7_500_000_000
    amounts = {**dict.fromkeys(CATEGORIES, 0), "weights": 2 * psi, "gradients": 2 * psi, "optimizer": 12 * psi}
    point = MemoryPoint("step", "", amounts, amounts)
    share = share_of_one_card(SimulatedUpdate(point, [point], psi), shard, 64)
    assert round(share.peak_at.top / 1e9, 1) == gigabytes
