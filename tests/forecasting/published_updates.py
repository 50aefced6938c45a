"""Updates of published trainings that are no recipe's: how a row of ``published.toml`` sets up and what it runs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F

from gradlab.forecasting.training import AdamW8bit

OPTIMIZERS: dict[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "adamw-8bit": AdamW8bit}


def whole(model: nn.Module, kind: str, *, fused: bool = False) -> torch.optim.Optimizer:
    """Return one optimizer for all parameters; PyTorch's default on a GPU is to update them at once."""
    return OPTIMIZERS[kind](model.parameters(), lr=1e-3, fused=fused, foreach=not fused)


def in_backward(model: nn.Module, kind: str) -> torch.optim.Optimizer:
    """Give each parameter an optimizer that steps as soon as its gradient is there; return one with nothing to do."""
    options = {} if kind == "adamw-8bit" else {"foreach": False}
    optimizers = {p: OPTIMIZERS[kind]([p], lr=1e-3, **options) for p in model.parameters()}

    def step(parameter: Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    return torch.optim.SGD(model.parameters())


def tutorial(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Any) -> None:
    """Train as the tutorial "How to save memory by fusing the optimizer step into the backward pass" does."""
    x, _ = batch
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def full_finetune(
    model: Any, optimizer: torch.optim.Optimizer, batch: Any, chunks: int = 1, *, offload: bool = False
) -> None:
    """Train as torchtune's full_finetune_single_device does: the loss in float32, in one piece or in chunks."""
    x, y = batch
    if offload:  # to the CPU's memory, and back
        with saved_tensors_hooks(
            lambda t: t if isinstance(t, nn.Parameter) or t.numel() < 1024 else (t.shape, t.dtype),
            lambda saved: saved if isinstance(saved, Tensor) else torch.empty(saved[0], dtype=saved[1]),
        ):
            hidden = model(x)
    else:
        hidden = model(x)
    scores = [F.linear(piece, model.tokens.weight) for piece in hidden.chunk(chunks, dim=1)]
    if chunks == 1:
        scores[0] = scores[0].float()
    del hidden
    losses = [
        F.cross_entropy(piece.float().flatten(0, 1), label.flatten(), reduction="sum")
        for piece, label in zip(scores, y.chunk(chunks, dim=1), strict=True)
    ]
    del scores
    torch.stack(losses).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def from_scratch(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Any) -> None:
    """Train as rasbt/LLMs-from-scratch does: the scores are gone once there is a loss."""
    x, y = batch
    optimizer.zero_grad()
    F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
    optimizer.step()


def once_more(model: nn.Module, batch: dict[str, Tensor]) -> None:
    """Run forward and backward, and leave the gradients, of the input, too: as Liger's benchmark does."""
    x, *rest = batch.values()
    x.requires_grad_()
    output = model(x, *rest)
    if output.ndim:
        output.backward(torch.randn_like(output), retain_graph=True)
    else:
        output.backward()
