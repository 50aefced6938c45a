"""What a forecast is asked about models by name: the published sizes, as numbers that need no torch.

Sources. Every size is the config.json that was published with its weights on the Hugging Face hub:
openai-community/gpt2, gpt2-medium, gpt2-large and gpt2-xl; meta-llama/Llama-3.2-1B and -3B, Llama-3.1-8B, -70B and
-405B, Llama-2-7b-hf; TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T; mistralai/Mistral-7B-v0.1; Qwen/Qwen2.5-0.5B,
-1.5B, -3B and -7B.
Those of Llama 3 are also in "The Llama 3 Herd of Models", arXiv 2407.21783, table 3.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from .._checks import LARGEST_FLOAT, number, on_off, one_of, whole_number

_MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3", "gpt2")
_MOST_LAYERS = 1000


@dataclass(frozen=True)
class ModelSize:
    """The numbers of a decoder-only transformer.

    ``family`` is ``"llama"`` (RMSNorm, SwiGLU, rotary positions, no biases unless ``qkv_bias``) or ``"gpt2"``
    (LayerNorm, GELU, learned positions, biases, always ``tied``). ``hidden`` is the width inside the MLP,
    ``max_context`` the most tokens that it reads at a time, ``head_dim`` the width of one attention head, 0 for
    d_model / heads. ``tied`` says that the head is the embedding, ``qkv_bias`` that queries, keys and values have
    biases, and ``qk_norm`` that the queries and keys of a head are normalised.
    """

    name: str
    family: str
    layers: int
    d_model: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    max_context: int
    rope_base: float = 500_000.0
    tied: bool = False
    qkv_bias: bool = False
    head_dim: int = 0
    qk_norm: bool = False

    def __post_init__(self) -> None:
        """Fill in what follows from the others, and check that the heads come out even."""
        one_of("the family of a size", self.family, ("llama", "gpt2"), kind=ValueError)
        if self.heads % self.kv_heads or (not self.head_dim and self.d_model % self.heads):
            raise ValueError(
                f"{self.name}: {self.heads} heads must be a multiple of {self.kv_heads} key/value heads, "
                f"and without a head_dim the width {self.d_model} a multiple of the heads"
            )
        object.__setattr__(self, "head_dim", self.head_dim or self.d_model // self.heads)
        if self.family == "llama" and self.head_dim % 2:
            raise ValueError(f"{self.name}: the width of a head must be even for rotary positions, got {self.head_dim}")
        if self.family == "gpt2":
            object.__setattr__(self, "tied", True)
            object.__setattr__(self, "qkv_bias", True)

    @property
    def parameters(self) -> int:
        """How many numbers there are to learn, the tied ones once."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        layer = 2 * self.d_model * (queries + keys) + self.qkv_bias * (queries + 2 * keys)
        outside = (2 - self.tied) * self.vocabulary * self.d_model
        if self.family == "llama":
            layer += self.qk_norm * 2 * self.head_dim + 3 * self.d_model * self.hidden + 2 * self.d_model
            return outside + self.layers * layer + self.d_model
        biases = self.d_model + self.hidden + self.d_model  # of the attention's output and the MLP
        layer += 2 * self.d_model * self.hidden + biases + 4 * self.d_model
        return outside + self.max_context * self.d_model + self.layers * layer + 2 * self.d_model


def model_sizes() -> list[str]:
    """Return the names of the sizes, smallest first."""
    return list(_SIZES)


def model_size(name: str) -> ModelSize:
    """Return a size by its name; another name is a ValueError that lists them."""
    return _SIZES[one_of("the name of a size", name, _SIZES, kind=ValueError)]


def size_from_config(config: str | os.PathLike[str] | Mapping[str, Any]) -> ModelSize:
    """Return the size of a model of one's own, as the config.json of Hugging Face's transformers describes it.

    config: the path of the file or of the folder that contains it, or what is in it. ``model_type`` is "llama",
        "mistral", "qwen2", "qwen3" or "gpt2". Nothing is downloaded, and transformers is not needed.

    Raises TypeError or ValueError that names what is missing or wrong and what is allowed.
    """
    told, folder = _read_config(config)
    kind = one_of("size_from_config: model_type", told.get("model_type"), _MODEL_TYPES, kind=ValueError)
    known_as = str(told.get("_name_or_path") or "").replace("\\", "/")  # a name on the hub, or a path
    name = PurePosixPath(known_as).name or folder or kind

    def count(key: str, otherwise: int | None = None, most: int = 2**24) -> int:
        value = told.get(key)
        if value is not None:
            return whole_number(f"size_from_config: {key}", value, 1, most, kind=ValueError)
        if otherwise is None:
            raise ValueError(f"size_from_config: {name} has no {key!r}, which a model_type of {kind!r} needs")
        return otherwise

    def says(key: str, otherwise: bool = False) -> bool:
        return on_off(f"size_from_config: {key}", told.get(key, otherwise), kind=ValueError)

    if kind == "gpt2":
        if not says("tie_word_embeddings", True):
            raise ValueError("size_from_config: tie_word_embeddings of a gpt2 must be true: its head is the embedding")
        layers, width, heads = count("n_layer", most=_MOST_LAYERS), count("n_embd"), count("n_head")
        hidden = count("n_inner", 4 * width)
        return ModelSize(name, "gpt2", layers, width, heads, heads, hidden, count("vocab_size"), count("n_positions"))
    for key in ("attention_bias", "mlp_bias"):
        if says(key):
            raise ValueError(f"size_from_config: {key} must be false: the only biases are those of qwen2 and gpt2")
    heads = count("num_attention_heads")
    return ModelSize(
        name,
        "llama",
        layers=count("num_hidden_layers", most=_MOST_LAYERS),
        d_model=count("hidden_size"),
        heads=heads,
        kv_heads=count("num_key_value_heads", heads if kind == "llama" else None),  # older ones leave it out
        hidden=count("intermediate_size"),
        vocabulary=count("vocab_size"),
        max_context=count("max_position_embeddings"),
        rope_base=_rope_base(told),
        tied=says("tie_word_embeddings"),
        qkv_bias=kind == "qwen2",
        head_dim=count("head_dim", 128 if kind == "qwen3" else 0),
        qk_norm=kind == "qwen3",
    )


def _rope_base(told: Mapping[str, Any]) -> float:
    """Return the base of the rotary positions; 10,000, as in transformers, where there is none."""
    later = told.get("rope_parameters")  # where transformers 5 has it
    base = told.get("rope_theta") or (later.get("rope_theta") if isinstance(later, Mapping) else None) or 10_000.0
    return number("size_from_config: rope_theta", base, 1.0, LARGEST_FLOAT, kind=ValueError)


def _read_config(config: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return what is in a config.json, and the name of the folder that it is in."""
    if isinstance(config, Mapping):
        return config, ""
    if not isinstance(config, (str, os.PathLike)):
        raise TypeError(f"size_from_config: give a path, or what is in a config.json as a dict, got {config!r}")
    wanted = "give the path of a config.json or of the folder that contains it; nothing is downloaded"
    if not os.fspath(config):  # which would be the working directory
        raise ValueError(f"size_from_config: the path is empty: {wanted}")
    path = Path(config)
    try:
        path = path / "config.json" if path.is_dir() else path
        told = json.loads(path.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"size_from_config: there is no file {str(path)!r}: {wanted}") from None
    except OSError as error:
        raise ValueError(f"size_from_config: {str(path)!r} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"size_from_config: {str(path)!r} is no config.json: {error}") from None
    if not isinstance(told, dict):
        raise ValueError(f"size_from_config: {str(path)!r} is no config.json: it holds no names and values")
    return told, path.resolve().parent.name


def _gpt2(name: str, layers: int, d_model: int, heads: int) -> ModelSize:
    rest: dict[str, Any] = {"hidden": 4 * d_model, "vocabulary": 50_257, "max_context": 1024}
    return ModelSize(name, "gpt2", layers, d_model, heads, kv_heads=heads, **rest)


def _llama3(name: str, layers: int, d_model: int, heads: int, hidden: int, *, tied: bool = False) -> ModelSize:
    rest: dict[str, Any] = {"kv_heads": 8, "vocabulary": 128_256, "max_context": 131_072}
    return ModelSize(name, "llama", layers, d_model, heads, hidden=hidden, tied=tied, **rest)


def _llama2(name: str, layers: int, d_model: int, kv_heads: int, hidden: int, max_context: int) -> ModelSize:
    rest: dict[str, Any] = {"vocabulary": 32_000, "max_context": max_context, "rope_base": 10_000.0}
    return ModelSize(name, "llama", layers, d_model, 32, kv_heads, hidden, **rest)


def _qwen(name: str, layers: int, d_model: int, heads: int, kv_heads: int, hidden: int, max_context: int) -> ModelSize:
    rest: dict[str, Any] = {"vocabulary": 151_936, "rope_base": 1e6, "tied": True, "qkv_bias": True}
    return ModelSize(name, "llama", layers, d_model, heads, kv_heads, hidden, max_context=max_context, **rest)


_SIZES = {
    size.name: size
    for size in (
        _gpt2("gpt2", 12, 768, 12),
        _gpt2("gpt2-medium", 24, 1024, 16),
        _qwen("qwen2.5-0.5b", 24, 896, 14, 2, 4864, 32_768),
        _gpt2("gpt2-large", 36, 1280, 20),
        _llama2("tinyllama-1.1b", 22, 2048, 4, 5632, 2048),
        _llama3("llama-1b", 16, 2048, 32, 8192, tied=True),
        _qwen("qwen2.5-1.5b", 28, 1536, 12, 2, 8960, 131_072),
        _gpt2("gpt2-1.5b", 48, 1600, 25),
        _qwen("qwen2.5-3b", 36, 2048, 16, 2, 11_008, 32_768),
        _llama3("llama-3b", 28, 3072, 24, 8192, tied=True),
        _llama2("llama2-7b", 32, 4096, 32, 11_008, 4096),
        _llama2("mistral-7b", 32, 4096, 8, 14_336, 32_768),
        replace(_qwen("qwen2.5-7b", 28, 3584, 28, 4, 18_944, 131_072), vocabulary=152_064, tied=False),
        _llama3("llama-8b", 32, 4096, 32, 14_336),
        _llama3("llama-70b", 80, 8192, 64, 28_672),
        _llama3("llama-405b", 126, 16_384, 128, 53_248),
    )
}
