"""The published sizes: their numbers against what was published, and against the models that are built from them."""

from __future__ import annotations

import pytest
import torch

from gradlab.forecasting import model_size, model_sizes
from gradlab.forecasting.fake_mode import FakeTensors
from gradlab.forecasting.sizes import ModelSize
from gradlab.forecasting.transformer import Decoder, apply_rope, next_token_loss, rope_angles

# What the checkpoints on the Hugging Face hub hold, to the last parameter; tied heads are counted once.
PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "qwen2.5-0.5b": 494_032_768,
    "gpt2-large": 774_030_080,
    "tinyllama-1.1b": 1_100_048_384,
    "llama-1b": 1_235_814_400,
    "qwen2.5-1.5b": 1_543_714_304,
    "gpt2-1.5b": 1_557_611_200,
    "qwen2.5-3b": 3_085_938_688,
    "llama-3b": 3_212_749_824,
    "llama2-7b": 6_738_415_616,
    "mistral-7b": 7_241_732_096,
    "qwen2.5-7b": 7_615_616_512,
    "llama-8b": 8_030_261_248,
    "llama-70b": 70_553_706_496,
    "llama-405b": 405_853_388_800,
}
TINY = [
    ModelSize("tiny-llama", "llama", 2, 32, 4, kv_heads=2, hidden=48, vocabulary=61, max_context=64),
    ModelSize("tiny-gpt2", "gpt2", 2, 32, 4, 4, 128, 61, 16, tied=True, qkv_bias=True),
    ModelSize("tiny-qwen2", "llama", 2, 32, 4, 2, 48, 61, 64, tied=True, qkv_bias=True),
]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_size_has_as_many_parameters_as_was_published(name: str) -> None:
    with FakeTensors():
        model = Decoder(model_size(name))
    assert sum(p.numel() for p in model.parameters()) == PUBLISHED[name]
    assert all(p.dtype == torch.float32 for p in model.parameters())


def test_the_sizes_come_smallest_first() -> None:
    assert model_sizes() == list(PUBLISHED)
    assert list(PUBLISHED.values()) == sorted(PUBLISHED.values())


@pytest.mark.parametrize("size", TINY, ids=lambda s: s.name)
def test_a_decoder_learns_and_never_looks_ahead(size: ModelSize) -> None:
    torch.manual_seed(0)
    model = Decoder(size)
    tokens = torch.randint(0, size.vocabulary, (2, 12))
    output, changed = model(tokens), tokens.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % size.vocabulary
    assert torch.allclose(model(changed)[:, :7], output[:, :7], atol=1e-6)
    assert not torch.allclose(model(changed)[:, 7:], output[:, 7:], atol=1e-3)
    first = next_token_loss(output, tokens.roll(-1, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        loss = next_token_loss(model(tokens), tokens.roll(-1, 1))
        loss.backward()
        optimizer.step()
    assert loss < 0.3 * first
    assert all(p.grad is not None for p in model.parameters())


def test_rotary_positions_tell_how_far_apart_two_tokens_are() -> None:
    size = TINY[0]
    cos, sin = rope_angles(torch.arange(20), size)
    q, k = torch.randn(2, 1, 1, 1, size.head_dim).double().expand(2, 1, 1, 20, size.head_dim)
    turned_q, turned_k = (apply_rope(x, cos.double(), sin.double()) for x in (q, k))
    scores = (turned_q @ turned_k.transpose(-1, -2))[0, 0]
    for apart in (0, 3, 11):
        diagonal = scores.diagonal(apart)
        assert torch.allclose(diagonal, diagonal[0].expand_as(diagonal), atol=1e-5)
    assert torch.allclose(turned_q.norm(dim=-1), q.norm(dim=-1), atol=1e-5)


def test_an_unknown_name_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"one of 'gpt2', 'gpt2-medium', .*'llama-70b', 'llama-405b', got None"):
        model_size(None)  # type: ignore[arg-type]
