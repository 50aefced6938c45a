"""Checkpointing a model: the same numbers from less memory."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from gradlab import Ledger, tasks
from gradlab.forecasting.checkpointing import checkpoint_blocks, repeated_blocks
from gradlab.forecasting.sizes import ModelSize
from gradlab.forecasting.transformer import Decoder


class Residual(nn.Module):
    """A block with dropout, of which a net has several, in groups."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.2))

    def forward(self, x: Tensor, *, scale: float = 1.0) -> Tensor:
        return x + scale * self.inner(x)


class Grouped(nn.Module):
    """Two groups of blocks, as in a ResNet."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(Residual(16), Residual(16))
        self.second = nn.ModuleList([Residual(16), Residual(16)])
        self.out = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.second:
            x = block(x, scale=0.5)
        return self.out(x)


def decoder() -> nn.Module:
    return Decoder(ModelSize("tiny", "llama", 3, 32, 4, kv_heads=2, hidden=96, vocabulary=31, max_context=64))


def train(model: nn.Module, x: Tensor) -> tuple[list[Tensor], int]:
    """Loss and gradients, and the bytes saved for backward at most, with dropout from seed 0."""
    torch.manual_seed(0)
    with Ledger(model, inputs=[x]) as ledger:
        loss = model(x).square().mean()
        loss.backward()
    saved = max(point.high["activations"] for point in ledger.timeline)
    return [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)], saved


CASES = {
    "groups of blocks": (Grouped, lambda: torch.randn(64, 16)),
    "decoder": (decoder, lambda: torch.randint(0, 31, (4, 32))),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_gradients_come_from_less_memory(name: str) -> None:
    build, batch = CASES[name]
    torch.manual_seed(1)
    model, x = build(), batch()
    twin = copy.deepcopy(model)
    checkpoint_blocks(twin)
    with torch.no_grad():
        assert torch.equal(twin.eval()(x), model.eval()(x))
    plain, saved = train(model.train(), x)
    checked, saved_less = train(twin.train(), x)
    assert len(plain) == 1 + len(list(model.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(plain, checked, strict=True))
    assert saved_less < 0.75 * saved


def test_blocks_are_the_repeated_modules_that_hold_the_most() -> None:
    assert list(repeated_blocks(decoder())) == ["blocks.0", "blocks.1", "blocks.2"]
    assert list(repeated_blocks(Grouped())) == ["first.0", "first.1", "second.0", "second.1"]
    assert list(repeated_blocks(tasks.text().build(0))) == ["blocks.0", "blocks.1"]
    assert repeated_blocks(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))) == {}


def test_a_model_without_blocks_is_refused() -> None:
    for model in (nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))):
        with pytest.raises(ValueError, match=f"repeated blocks, and {type(model).__name__} has none"):
            checkpoint_blocks(model)
