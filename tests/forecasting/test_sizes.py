"""The published sizes: their numbers against what was published, and against the models that are built from them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from gradlab.forecasting import ModelSize, model_size, model_sizes, size_from_config
from gradlab.forecasting.fake_mode import FakeTensors
from gradlab.forecasting.transformer import Decoder, next_token_loss

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
    with FakeTensors():
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
    from gradlab.forecasting.transformer import apply_rope, rope_angles

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


# The keys of published config.json files that count, and what they must give: the size of that name.
LLAMA_1B = {
    "model_type": "llama",
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 128_256,
    "max_position_embeddings": 131_072,
    "rope_theta": 500_000.0,
    "tie_word_embeddings": True,
    "head_dim": 64,
    "attention_bias": False,
    "torch_dtype": "bfloat16",
}
GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50_257}
QWEN_3B = {
    **LLAMA_1B,
    **{"model_type": "qwen2", "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2},
    **{"intermediate_size": 11_008, "vocab_size": 151_936, "max_position_embeddings": 32_768, "head_dim": None},
    **{"rope_theta": None, "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}},
}
MISTRAL = {
    **LLAMA_1B,
    **{"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14_336},
    **{"vocab_size": 32_000, "max_position_embeddings": 32_768, "rope_theta": 10_000, "tie_word_embeddings": False},
    **{"head_dim": None, "sliding_window": 4096},
}
QWEN3 = {  # Qwen/Qwen3-0.6B: heads wider than d_model / heads, and a norm on queries and keys
    **{"model_type": "qwen3", "num_hidden_layers": 28, "hidden_size": 1024, "num_attention_heads": 16},
    **{"num_key_value_heads": 8, "intermediate_size": 3072, "vocab_size": 151_936, "head_dim": 128},
    **{"max_position_embeddings": 40_960, "tie_word_embeddings": True, "rope_theta": 1_000_000},
}


@pytest.mark.parametrize(
    ("config", "name"), [(LLAMA_1B, "llama-1b"), (GPT2, "gpt2"), (QWEN_3B, "qwen2.5-3b"), (MISTRAL, "mistral-7b")]
)
def test_a_published_config_gives_the_published_size(config: dict[str, Any], name: str) -> None:
    assert size_from_config(config | {"_name_or_path": f"somebody/{name}"}) == model_size(name)
    assert size_from_config(config).name == config["model_type"]


def test_a_config_says_what_its_model_has_of_its_own() -> None:
    assert size_from_config(QWEN3).parameters == 596_049_920
    older = {key: value for key, value in LLAMA_1B.items() if key not in ("num_key_value_heads", "head_dim")}
    assert (size_from_config(older).kv_heads, size_from_config(older).head_dim) == (32, 64)
    untied = {key: value for key, value in LLAMA_1B.items() if key not in ("tie_word_embeddings", "rope_theta")}
    assert not size_from_config(untied).tied
    assert size_from_config(untied).rope_base == 10_000
    assert size_from_config(GPT2 | {"n_inner": None}).hidden == 3072
    assert size_from_config(GPT2 | {"n_inner": 100}).hidden == 100
    assert size_from_config(GPT2 | {"_name_or_path": r"C:\models\mine"}).name == "mine"
    assert size_from_config(GPT2 | {"_name_or_path": "/models/mine/"}).name == "mine"


def test_a_config_is_read_from_a_file_or_its_folder_wherever_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my model"
    folder.mkdir()
    (folder / "config.json").write_text("\ufeff" + json.dumps(GPT2), encoding="utf-8")
    expected = dataclasses.replace(model_size("gpt2"), name="my model")
    for path in (folder, folder / "config.json", str(folder), str(folder / "config.json")):
        assert size_from_config(path) == expected
    monkeypatch.chdir(folder)
    assert size_from_config("config.json") == size_from_config(".") == expected
    assert model_size("gpt2").name == "gpt2"
    with pytest.raises(ValueError, match="the path is empty: give the path of a"):
        size_from_config("")


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in LLAMA_1B.items() if name != key}


BAD_CONFIGS: list[tuple[Any, str]] = [
    *(
        (without(key), f"llama has no '{key}', which a model_type of 'llama' needs")
        for key in (
            *("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size"),
            "max_position_embeddings",
        )
    ),
    ({k: v for k, v in MISTRAL.items() if k != "num_key_value_heads"}, "mistral has no 'num_key_value_heads'"),
    ({"model_type": "gpt2", "n_embd": 768}, "gpt2 has no 'n_layer', which a model_type of 'gpt2' needs"),
    ({}, "model_type must be one of 'llama', 'mistral', 'qwen2', 'qwen3', 'gpt2', got None"),
    ({"model_type": "bert"}, "one of 'llama', 'mistral', 'qwen2', 'qwen3', 'gpt2', got 'bert'"),
    (LLAMA_1B | {"hidden_size": "2048"}, "hidden_size must be a whole number from 1 to 16,777,216, got '2048'"),
    (LLAMA_1B | {"hidden_size": True}, "hidden_size must be a whole number from 1 to 16,777,216, got True"),
    (LLAMA_1B | {"vocab_size": 0}, "vocab_size must be a whole number from 1 to 16,777,216, got 0"),
    (LLAMA_1B | {"num_hidden_layers": 10**9}, "num_hidden_layers must be a whole number from 1 to 1,000, got"),
    (LLAMA_1B | {"num_key_value_heads": 5}, "llama: 32 heads must be a multiple of 5 key/value heads"),
    (LLAMA_1B | {"head_dim": 5}, "llama: the width of a head must be even for rotary positions, got 5"),
    (LLAMA_1B | {"tie_word_embeddings": "yes"}, "tie_word_embeddings must be True or False, got 'yes'"),
    (LLAMA_1B | {"attention_bias": True}, "attention_bias must be false: the only biases are those of qwen2 and gpt2"),
    (LLAMA_1B | {"mlp_bias": True}, "mlp_bias must be false"),
    (LLAMA_1B | {"rope_theta": "big"}, "rope_theta must be a number from 1 to .*, got 'big'"),
    (GPT2 | {"tie_word_embeddings": False}, "tie_word_embeddings of a gpt2 must be true"),
    (3, "give a path, or what is in a config.json as a dict, got 3"),
    (None, "give a path, or what is in a config.json as a dict, got None"),
    ("meta-llama/Llama-3.2-1B", "there is no file 'meta-llama/Llama-3.2-1B': .*; nothing is downloaded"),
    (Path(__file__) / "config.json", "there is no file '.*config.json'"),
    (Path(__file__).parent, "there is no file '.*config.json'"),
    (Path(__file__), r"test_sizes.py' is no config.json: Extra data"),
    ("a\0b", "is no config.json"),
]


@pytest.mark.parametrize(("config", "said"), BAD_CONFIGS, ids=[str(number) for number in range(len(BAD_CONFIGS))])
def test_a_config_that_will_not_do_is_refused_in_one_sentence(config: Any, said: str) -> None:
    with pytest.raises(TypeError if config in (3, None) else ValueError, match=said) as told:
        size_from_config(config)
    assert str(told.value).startswith(("size_from_config: ", "llama: "))
    assert "\n" not in str(told.value)
    assert told.value.__cause__ is None


@pytest.mark.parametrize("text", ["", "[1]", '"gpt2"', "{", "\udcff", "[" * 100_000])
def test_a_file_that_is_no_config_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"size_from_config: '.*config.json' is no config.json: "):
        size_from_config(tmp_path)


def test_a_config_of_ones_own_can_be_built() -> None:
    tiny = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48, "vocab_size": 61, "head_dim": 6}
    size = size_from_config(QWEN3 | tiny)
    model = Decoder(size)
    assert sum(p.numel() for p in model.parameters()) == size.parameters
    assert model(torch.zeros(1, 3, dtype=torch.int64)).shape == (1, 3, 61)
