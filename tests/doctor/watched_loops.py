"""Loops of a dozen kinds for the tests of watch: each returns all its results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

UPDATES = 7


def build(width: int = 8) -> nn.Module:
    return nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 1))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(6, 4)
    return x, x.sum(1, keepdim=True)  # before x may want a gradient


def results(losses: list[Any], *models: nn.Module, optimizers: tuple[Any, ...] = ()) -> list[torch.Tensor]:
    """Return losses, weights, buffers, gradients, optimizer state and the generator's state."""
    tensors = [torch.as_tensor(loss).detach().clone() for loss in losses]
    for model in models:
        tensors += [value.detach().clone() for value in model.state_dict().values()]
        tensors += [p.grad.detach().clone() for p in model.parameters() if p.grad is not None]
    for optimizer in optimizers:
        for state in optimizer.state_dict()["state"].values():
            tensors += [value.clone() for value in state.values() if isinstance(value, torch.Tensor)]
    return [*tensors, torch.get_rng_state()]


def fit(
    model: nn.Module,
    call: Callable[..., torch.Tensor],
    optimizer: torch.optim.Optimizer,
    *,
    after_backward: Callable[[], None] = lambda: None,
    after_step: Callable[[], None] = lambda: None,
) -> list[torch.Tensor]:
    """Train with a usual loop."""
    losses = []
    for _ in range(UPDATES):
        x, y = batch()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(call(x), y)
        loss.backward()
        after_backward()
        optimizer.step()
        after_step()
        losses.append(loss.detach())
    return results(losses, model, optimizers=(optimizer,))


def plain(make: Callable[..., Any], **options: Any) -> list[torch.Tensor]:
    model = build()
    optimizer = make(model.parameters(), lr=0.01, **options)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=UPDATES)
    clip = functools.partial(nn.utils.clip_grad_norm_, list(model.parameters()), 0.5)
    return fit(model, model, optimizer, after_backward=clip, after_step=scheduler.step)


def closure() -> list[torch.Tensor]:
    model, losses = build(), []
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    x, y = batch()

    def again() -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(UPDATES):
        losses.append(optimizer.step(again).detach())
    return results(losses, model)


def gan() -> list[torch.Tensor]:
    generator, critic, losses = build(), nn.Linear(1, 1), []
    generator_adam, critic_adam = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    for _ in range(UPDATES):
        x, y = batch()
        critic_adam.zero_grad()
        loss = critic(generator(x).detach()).mean() - critic(y).mean()
        loss.backward()
        critic_adam.step()
        generator_adam.zero_grad()
        fooled = -critic(generator(x)).mean()
        fooled.backward()
        generator_adam.step()
        losses += [loss.detach(), fooled.detach()]
    return results(losses, generator, critic, optimizers=(generator_adam, critic_adam))


def accumulation() -> list[torch.Tensor]:
    model, losses = build(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for number in range(4 * UPDATES):
        x, y = batch()
        loss = nn.functional.mse_loss(model(x), y) / 4
        loss.backward()
        losses.append(loss.detach())
        if number % 4 == 3:
            for p in model.parameters():
                p.grad.mul_(0.5)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    return results(losses, model, optimizers=(optimizer,))


def forgotten() -> list[torch.Tensor]:
    model, losses = build(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(4 * UPDATES):
        x, y = batch()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)  # and the graphs kept
    return results(losses, model)


def amp() -> list[torch.Tensor]:
    model, losses = build(), []
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.01), torch.amp.GradScaler("cpu", init_scale=2.0**40)
    for _ in range(4 * UPDATES):
        x, y = batch()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(x).float(), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses += [loss.detach(), torch.tensor(scaler.get_scale())]
    return results(losses, model)


def checkpointing(reentrant: bool) -> list[torch.Tensor]:
    model = build()

    def call(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(model, x.requires_grad_(), use_reentrant=reentrant)

    return fit(model, call, torch.optim.SGD(model.parameters(), lr=0.01))


def in_backward() -> list[torch.Tensor]:
    model, losses = build(), []
    optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}

    def step(p: torch.Tensor) -> None:
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step)
    for _ in range(UPDATES):
        x, y = batch()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        losses.append(loss.detach())
    return results(losses, model, optimizers=tuple(optimizers.values()))


def second_order() -> list[torch.Tensor]:
    model, losses = build(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(UPDATES):
        x, y = batch()
        x.requires_grad_()
        optimizer.zero_grad()
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        loss = nn.functional.mse_loss(model(x), y.detach()) + slope.norm(dim=1).sub(1).square().mean()
        loss.backward(create_graph=True)
        loss.sum().backward(inputs=list(model.parameters()))
        optimizer.step()
        losses.append(loss.detach())
    return results(losses, model)


def compiled() -> list[torch.Tensor]:
    model = build()
    torch._dynamo.reset()
    fast = torch.compile(model, backend="eager", fullgraph=True)
    return fit(model, fast, torch.optim.SGD(model.parameters(), lr=0.01))


LOOPS: dict[str, Callable[[], list[torch.Tensor]]] = {
    "sgd": functools.partial(plain, torch.optim.SGD, momentum=0.9),
    "adam": functools.partial(plain, torch.optim.Adam, foreach=False),
    "foreach": functools.partial(plain, torch.optim.AdamW, foreach=True),
    "fused": functools.partial(plain, torch.optim.Adam, fused=True),
    "closure": closure,
    "gan": gan,
    "accumulation": accumulation,
    "forgotten": forgotten,
    "amp": amp,
    "checkpoint": functools.partial(checkpointing, False),
    "reentrant checkpoint": functools.partial(checkpointing, True),
    "optimizer in backward": in_backward,
    "second order": second_order,
    "compile": compiled,
}
