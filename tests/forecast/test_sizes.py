"""The published sizes: their numbers against what was published, and against the models that are built from them."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from gradlab.forecast import ModelSize, model_size, model_sizes
from gradlab.forecast.fake_mode import CpuFakeTensorMode
from gradlab.forecast.transformer import Decoder, next_token_loss

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
    ModelSize("tiny-gpt2", "gpt2", 2, 32, 4, kv_heads=4, hidden=128, vocabulary=61, max_context=16),
    ModelSize("tiny-qwen2", "llama", 2, 32, 4, 2, 48, 61, 64, tied=True, qkv_bias=True),
    ModelSize("tiny-qwen3", "llama", 2, 32, 4, 2, 48, 61, 64, tied=True, head_dim=16, qk_norm=True),
    ModelSize("tiny-narrow", "llama", 2, 30, 4, 2, 48, 61, 64, head_dim=6),
]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_size_has_as_many_parameters_as_was_published(name: str) -> None:
    size = model_size(name)
    assert size.parameters == PUBLISHED[name]
    with CpuFakeTensorMode():
        model = Decoder(size)
    assert sum(p.numel() for p in model.parameters()) == PUBLISHED[name]
    assert all(p.dtype == torch.float32 for p in model.parameters())


def test_the_sizes_come_smallest_first() -> None:
    assert model_sizes() == list(PUBLISHED)
    assert list(PUBLISHED.values()) == sorted(PUBLISHED.values())


@pytest.mark.parametrize("size", TINY, ids=lambda s: s.name)
def test_a_decoder_learns_and_never_looks_ahead(size: ModelSize) -> None:
    torch.manual_seed(0)
    model = Decoder(size)
    assert sum(p.numel() for p in model.parameters()) == size.parameters
    tokens = torch.randint(0, size.vocabulary, (2, 12))
    output = model(tokens)
    assert output.shape == (2, 12, size.vocabulary)
    changed = tokens.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % size.vocabulary
    assert torch.allclose(model(changed)[:, :7], output[:, :7], atol=1e-6)
    assert not torch.allclose(model(changed)[:, 7:], output[:, 7:], atol=1e-3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    first = next_token_loss(model(tokens), tokens.roll(-1, 1))
    for _ in range(30):
        optimizer.zero_grad()
        loss = next_token_loss(model(tokens), tokens.roll(-1, 1))
        loss.backward()
        optimizer.step()
    assert loss < 0.3 * first
    assert all(p.grad is not None for p in model.parameters())


def test_rotary_positions_tell_only_how_far_apart_two_tokens_are() -> None:
    from gradlab.forecast.transformer import apply_rope, rope_angles

    size = TINY[0]
    cos, sin = rope_angles(torch.arange(20), size)
    q, k = torch.randn(2, 1, 1, 1, size.head_dim).double().expand(2, 1, 1, 20, size.head_dim)
    scores = (apply_rope(q, cos.double(), sin.double()) @ apply_rope(k, cos.double(), sin.double()).transpose(-1, -2))[
        0, 0
    ]
    for apart in (0, 3, 11):
        diagonal = scores.diagonal(apart)
        assert torch.allclose(diagonal, diagonal[0].expand_as(diagonal), atol=1e-5)
    assert torch.allclose(apply_rope(q, cos.double(), sin.double()).norm(dim=-1), q.norm(dim=-1), atol=1e-5)


def test_the_two_families_have_what_they_are_known_for() -> None:
    llama, gpt2, qwen2, qwen3, narrow = (Decoder(size) for size in TINY)
    assert gpt2.head.weight is gpt2.tokens.weight
    assert llama.head.weight is not llama.tokens.weight
    assert not any(name.endswith("bias") for name, _ in llama.named_parameters())
    assert gpt2.blocks[0].attention.q_proj.bias is not None
    assert llama.blocks[0].attention.k_proj.out_features == 16  # 2 key heads of width 8 for 4 query heads
    assert qwen2.head.weight is qwen2.tokens.weight
    assert {name.rsplit(".", 2)[-2] for name, _ in qwen2.named_parameters() if name.endswith("bias")} == {
        *("q_proj", "k_proj", "v_proj")
    }
    assert qwen3.blocks[0].attention.q_norm.weight.shape == (16,)
    assert llama.blocks[0].attention.q_norm is None
    assert qwen3.blocks[0].attention.out.in_features == 64  # 4 heads of width 16 in a model of width 32
    assert narrow.blocks[0].attention.q_proj.out_features == 24


def test_gpt2_is_tied_and_has_biases_and_others_say_so() -> None:
    assert [(size.tied, size.qkv_bias) for size in TINY] == [
        *((False, False), (True, True), (True, True), (True, False), (False, False))
    ]
    assert [size.head_dim for size in TINY] == [8, 8, 8, 16, 6]
    assert dataclasses.replace(TINY[4], layers=3).head_dim == 6


def test_heads_that_do_not_come_out_even_are_refused() -> None:
    numbers = {"hidden": 48, "vocabulary": 61, "max_context": 64}
    for d_model, heads, kv_heads in ((32, 4, 3), (30, 4, 2)):
        with pytest.raises(ValueError, match=f"odd: 4 heads must be a multiple of {kv_heads} key/value heads"):
            ModelSize("odd", "llama", 2, d_model, heads, kv_heads, **numbers)
    with pytest.raises(ValueError, match="the family of a size must be one of 'llama', 'gpt2', got 'bert'"):
        ModelSize("odd", "bert", 2, 32, 4, 4, **numbers)


def test_a_size_is_frozen_and_an_unknown_name_is_refused() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        model_size("llama-8b").layers = 1  # type: ignore[misc]
    with pytest.raises(ValueError, match=r"one of 'gpt2', 'gpt2-medium', .*'llama-70b', 'llama-405b', got None"):
        model_size(None)  # type: ignore[arg-type]
