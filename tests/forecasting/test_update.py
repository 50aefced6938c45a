"""An update of the reader's own, against a Ledger over the same update on real tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import Ledger, Recipe
from gradlab.forecasting import ForecastError, forecast

F = nn.functional


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))


def adam(model: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), foreach=False)


def plain(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Any) -> None:
    x, y = batch
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()


def step_in_backward(model: nn.Module, optimizers: dict[Tensor, torch.optim.Optimizer], batch: Any) -> None:
    x, y = batch
    F.mse_loss(model(x), y).backward()


def hooked(model: nn.Module) -> dict[Tensor, torch.optim.Optimizer]:
    """As in the tutorial "How to save memory by fusing the optimizer step into the backward pass"."""
    optimizers = {p: torch.optim.Adam([p], foreach=False) for p in model.parameters()}

    def step(parameter: Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    return optimizers


def chunked(model: nn.Sequential, optimizer: torch.optim.Optimizer, batch: Any) -> None:
    """The loss of a few rows at a time, so that not all scores are alive at once."""
    x, y = batch
    optimizer.zero_grad()
    hidden = model[:4](x)
    held = hidden.detach().requires_grad_()
    for rows, labels in zip(held.chunk(4), y.chunk(4), strict=True):
        (F.mse_loss(model[4](rows), labels) / 4).backward()
    hidden.backward(held.grad)
    optimizer.step()


class LoRA(nn.Module):
    """A frozen layer and two thin ones that learn."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(8, 8).requires_grad_(False)
        self.down, self.up = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


def trained(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], foreach=False)


def gan(models: dict[str, nn.Module], optimizers: tuple[Any, Any], batch: Tensor) -> None:
    generator, discriminator = models["g"], models["d"]
    for_g, for_d = optimizers
    fake = generator(torch.randn_like(batch))
    for_d.zero_grad()
    (discriminator(batch).mean() - discriminator(fake.detach()).mean()).backward()
    for_d.step()
    for_g.zero_grad()
    discriminator(fake).mean().backward()
    for_g.step()


def both(models: dict[str, nn.Module]) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    return adam(models["g"]), adam(models["d"])


def scaled(model: nn.Module, made: Any, batch: Any) -> None:
    optimizer, scaler = made
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.mse_loss(model(batch["x"]), batch["labels"]["y"])
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def with_scaler(model: nn.Module) -> tuple[Any, Any]:
    return adam(model), torch.amp.GradScaler("cpu", init_scale=1.0)


def pair() -> tuple[Tensor, Tensor]:
    return torch.rand(32, 8), torch.rand(32, 8)


def nested() -> dict[str, Any]:
    x, y = pair()
    return {"x": x, "labels": {"y": y}}


# name -> (update, model, setup, batch)
UPDATES: dict[str, tuple[Callable[..., None], Callable[[], Any], Callable[..., Any], Callable[[], Any]]] = {
    "plain": (plain, net, adam, pair),
    "step in backward": (step_in_backward, net, hooked, pair),
    "chunked loss": (chunked, net, adam, pair),
    "LoRA": (plain, LoRA, trained, pair),
    "GAN": (gan, lambda: {"g": net(), "d": net()}, both, lambda: torch.rand(16, 8)),
    "a dict and a scaler": (scaled, net, with_scaler, nested),
}


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_takes_what_it_takes_on_real_tensors(name: str) -> None:
    update, build, setup, batch = UPDATES[name]
    found = forecast(update, model=build(), setup=setup, batch=batch(), device="cpu")
    torch.manual_seed(0)
    model, sample = build(), batch()
    made = setup(model)
    modules = [model] if isinstance(model, nn.Module) else list(model.values())
    with Ledger(nn.ModuleList(modules), optimizers_in(made), sample) as ledger:
        update(model, made, sample)
        ledger.forget()
        update(model, made, sample)
    assert found.parameters == sum(p.numel() for m in modules for p in m.parameters())
    assert found.peak == ledger.peak
    assert found.peak_at.statement == ledger.peak_at.statement


def optimizers_in(made: Any) -> list[torch.optim.Optimizer]:
    several = made.values() if isinstance(made, dict) else made if isinstance(made, tuple) else [made]
    return [each for each in several if isinstance(each, torch.optim.Optimizer)]


def test_stepping_in_backward_keeps_no_gradients() -> None:
    late = forecast(plain, model=net(), setup=adam, batch=resized(2))
    early = forecast(step_in_backward, model=net(), setup=hooked, batch=resized(2))
    weights = sum(p.numel() * 4 for p in net().parameters())
    assert max(p.high["gradients"] for p in late.timeline) == weights
    assert max(p.high["gradients"] for p in early.timeline) == 4 * 64 * 64  # one layer's at a time
    assert early.peak < late.peak
    assert "The optimizer updates" not in late.covers
    assert "test_update.py" in early.peak_at.statement


@pytest.mark.slow
def test_the_largest_batch_of_an_update() -> None:
    found = forecast(plain, model=net(), setup=adam, batch=pair())
    best = found.largest("batch", on=1_000_000_000)
    fits = [forecast(plain, model=net(), setup=adam, batch=resized(n)).fits(1_000_000_000) for n in (best, best + 1)]
    assert fits == [True, False]
    with pytest.raises(ValueError, match="an update of your own has its own window"):
        found.largest("window", on="T4")


def resized(rows: int) -> tuple[Tensor, Tensor]:
    return torch.empty(rows, 8, device="meta"), torch.empty(rows, 8, device="meta")


def test_a_closure_over_the_readers_model_is_led_to_the_copy() -> None:
    model = net()

    def update(copy: nn.Module, optimizer: Any, batch: Any) -> None:
        plain(model, optimizer, batch)  # the name outside, not the one that is handed in

    ours = forecast(update, model=model, setup=adam, batch=pair())
    assert ours.at_peak == forecast(plain, model=model, setup=adam, batch=pair()).at_peak
    assert all(p.grad is None for p in model.parameters())


def test_an_optimizer_made_outside_is_refused() -> None:
    model = net()
    optimizer = adam(model)
    with pytest.raises(ForecastError, match=r"plain steps an optimizer of yours \(Adam\).*Make it in setup"):
        forecast(plain, model=model, setup=lambda model: optimizer, batch=pair())
    assert not optimizer.state


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model": 3}, "model must be a torch.nn.Module, or several in a dict, tuple or list, got 3"),
    ({"batch": None}, r"plain\(\) needs a sample batch with at least one tensor, got batch=None"),
    ({"setup": 3}, r"setup must be a function \(model\) -> what the update needs, got 3"),
    ({"loss_fn": print}, "an update has a loss of its own"),
    ({"context": 3}, "context is for the sizes"),
    ({"optimizer": "fused"}, "an update has its own optimizer, got optimizer='fused'; leave it out"),
    ({"recipe": Recipe()}, "an update has its own recipe, got recipe=Recipe"),
    ({"zero_grad_at": "after step"}, "an update has its own zero_grad, got zero_grad_at='after step'"),
    ({"model": nn.ReLU()}, "plain has no parameter that wants a gradient"),
]


@pytest.mark.parametrize(("wrong", "said"), REFUSED)
def test_bad_input_is_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        forecast(plain, **{"model": net(), "setup": adam, "batch": pair(), **wrong})


def test_model_and_setup_are_for_an_update() -> None:
    for wrong in ({"model": net()}, {"setup": adam}):
        with pytest.raises(ValueError, match="model and setup are for an update of your own"):
            forecast("digits", **wrong)


def test_a_compiled_model_is_told() -> None:
    whole = torch.compile(net(), backend="eager")
    part = net()
    part[2].compile(backend="eager")
    for model in (whole, part):
        found = forecast(model, batch=pair())
        assert found.peak == forecast(net(), batch=pair()).peak
        assert "torch.compile" in found.covers
    assert "torch.compile" not in forecast(net(), batch=pair()).covers
