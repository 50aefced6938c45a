"""Checkpointing a model as it is: same numbers, less memory, and no trace of it afterwards."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from gradlab import tasks
from gradlab.forecasting.checkpointing import checkpoint_blocks, checkpointing, repeated_blocks
from gradlab.forecasting.sizes import ModelSize
from gradlab.forecasting.transformer import Decoder
from gradlab.memory.ledger import Ledger


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


def gradients(model: nn.Module, x: Tensor) -> tuple[Tensor, list[Tensor], int]:
    """Loss, gradients and the bytes saved for backward at most, with dropout from seed 0."""
    model.zero_grad()
    torch.manual_seed(0)
    with Ledger(model, inputs=[x]) as ledger:
        loss = model(x).square().mean()
        loss.backward()
    saved = max(point.high["activations"] for point in ledger.timeline)
    return loss.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None], saved


CASES = {
    "groups of blocks": (Grouped, lambda: torch.randn(64, 16)),
    "decoder": (decoder, lambda: torch.randint(0, 31, (4, 32))),
    "text": (lambda: tasks.text().build(0), lambda: tasks.text().batches[0][0]),
    "plain sequential": (
        lambda: nn.Sequential(*(m for _ in range(8) for m in (nn.Linear(32, 32), nn.Tanh(), nn.Dropout(0.1)))),
        lambda: torch.randn(64, 32),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_gradients_from_less_memory_and_no_trace(name: str) -> None:
    make, batch = CASES[name]
    torch.manual_seed(1)
    model, x = make(), batch()
    state, attributes = copy.deepcopy(model.state_dict()), {n: set(vars(m)) for n, m in model.named_modules()}
    loss, plain, saved = gradients(model, x)
    with checkpointing(model):
        checked_loss, checked, saved_less = gradients(model, x)
    assert torch.equal(loss, checked_loss)
    assert all(torch.equal(a, b) for a, b in zip(plain, checked, strict=True))
    assert len(plain) == len(list(model.parameters()))
    assert saved_less < 0.75 * saved
    assert {n: set(vars(m)) for n, m in model.named_modules()} == attributes
    assert all(torch.equal(state[key], value) for key, value in model.state_dict().items())
    assert gradients(model, x)[2] == saved


def test_blocks_are_the_repeated_modules_that_hold_the_most() -> None:
    assert list(repeated_blocks(decoder())) == ["blocks.0", "blocks.1", "blocks.2"]
    assert list(repeated_blocks(Grouped())) == ["first.0", "first.1", "second.0", "second.1"]
    assert list(repeated_blocks(tasks.text().build(0))) == ["blocks.0", "blocks.1"]
    assert repeated_blocks(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))) == {}


def test_undoing_gives_back_a_forward_of_the_models_own_and_may_be_repeated() -> None:
    model = Grouped()
    own = model.first[0].forward
    model.first[0].forward = own  # somebody else's patch, on the instance
    off = checkpoint_blocks(model)
    assert model.first[0].forward is not own
    off()
    off()
    assert model.first[0].forward is own
    assert "forward" not in vars(model.first[1])


def test_an_error_inside_the_block_undoes_it_too() -> None:
    model = Grouped()
    with pytest.raises(ZeroDivisionError), checkpointing(model):
        raise ZeroDivisionError
    assert not any("forward" in vars(m) for m in model.modules())


def test_without_gradients_nothing_is_kept_or_computed_again() -> None:
    model, x = Grouped().eval(), torch.randn(4, 16)
    with torch.no_grad():
        plain = model(x)
        with checkpointing(model):
            assert torch.equal(model(x), plain)


def test_a_model_without_blocks_is_refused() -> None:
    class Lone(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    for model in (Lone(), nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))):
        with pytest.raises(ValueError, match=f"blocks that repeat, and {type(model).__name__} has none"):
            checkpoint_blocks(model)
        assert not any("forward" in vars(m) for m in model.modules())
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module, got 3"):
        checkpoint_blocks(3)  # type: ignore[arg-type]
