"""Small models of many kinds, and the tensors that PyTorch saves for backward: on fake CUDA tensors, or by our rules.

``python -m tests.forecasting.cuda_models`` under a PyTorch that was built with CUDA writes ``cuda_saved.json``. It
takes a card of compute capability 8.0 or later, whose attention kernels the rules follow.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

F = nn.functional
SAVED = Path(__file__).with_name("cuda_saved.json")
HOW = "Forward and loss on fake CUDA tensors, under PyTorch's CUDA build, for a card of compute capability {}.{}."
AMP = {"off": None, "bf16": torch.bfloat16, "fp16": torch.float16}

Loss = Callable[[Any, Any], Tensor]
Job = tuple[nn.Module, Any, Any, Loss]
"""A model, its input, the targets and the loss of the model's output and the targets."""


class Bert(nn.Module):
    """Layers of PyTorch's own, with a mask for what was padded."""

    def __init__(self, width: int = 48, length: int = 23) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(211, width, padding_idx=0), nn.Embedding(length, width)
        self.norm, self.drop = nn.LayerNorm(width, eps=1e-12), nn.Dropout(0.1)
        layer = (width, 4, 4 * width, 0.1, "gelu")
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(*layer, batch_first=True) for _ in range(2))
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, 5)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.drop(self.norm(self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=ids == 0)
        return self.head(torch.tanh(self.pool(x[:, 0])))


class Conv1D(nn.Module):
    """A linear layer with its weight the other way round, as in GPT-2."""

    def __init__(self, i: int, o: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(i, o) * 0.02), nn.Parameter(torch.zeros(o))

    def forward(self, x: Tensor) -> Tensor:
        flat = torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight)
        return flat.view(*x.shape[:-1], self.weight.shape[1])


class GptBlock(nn.Module):
    """Causal attention in one kernel, and a GELU that is written out."""

    def __init__(self, width: int, length: int, p: float = 0.1) -> None:
        super().__init__()
        self.ln_1, self.ln_2, self.heads, self.p = nn.LayerNorm(width), nn.LayerNorm(width), 2, p
        self.c_attn, self.c_proj = Conv1D(width, 3 * width), Conv1D(width, width)
        self.up, self.down = Conv1D(width, 4 * width), Conv1D(4 * width, width)
        self.drop = nn.Dropout(p)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.c_proj(self.attention(self.ln_1(x))))
        y = self.up(self.ln_2(x))
        y = 0.5 * y * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * torch.pow(y, 3.0))))
        return x + self.drop(self.down(y))

    def attention(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.c_attn(x).chunk(3, 2))
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p, is_causal=True)
        return out.transpose(1, 2).reshape(x.shape)


class Gpt(nn.Module):
    """A decoder whose head shares its weight with the embedding."""

    def __init__(self, width: int = 40, length: int = 29) -> None:
        super().__init__()
        self.wte, self.wpe, self.drop = nn.Embedding(199, width), nn.Embedding(length, width), nn.Dropout(0.1)
        self.blocks = nn.Sequential(*(GptBlock(width, length) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 199, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.drop(self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device)))
        return self.head(self.norm(self.blocks(x)))


def next_token(logits: Tensor, ids: Tensor) -> Tensor:
    return F.cross_entropy(logits[:, :-1].float().flatten(0, 1), ids[:, 1:].flatten())


class LlamaBlock(nn.Module):
    """Two heads of keys for four of queries, places turned into angles, and a gate."""

    def __init__(self, width: int, hidden: int = 120) -> None:
        super().__init__()
        self.norm1, self.norm2, self.act = nn.RMSNorm(width), nn.RMSNorm(width), nn.SiLU()
        outputs = (width, width // 2, width // 2, width, hidden, hidden)
        self.q, self.k, self.v, self.o, self.gate, self.up = (nn.Linear(width, o, bias=False) for o in outputs)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        y = self.norm1(x)
        q, k, v = (f(y).unflatten(2, (-1, cos.shape[-1])).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = (t * cos + torch.cat((-t.chunk(2, -1)[1], t.chunk(2, -1)[0]), -1) * sin for t in (q, k))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(out.transpose(1, 2).reshape(x.shape))
        y = self.norm2(x)
        return x + self.down(self.act(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embed, self.blocks = nn.Embedding(173, width), nn.ModuleList(LlamaBlock(width) for _ in range(2))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, 173, bias=False)
        self.register_buffer("frequencies", 10000 ** -(torch.arange(0, 16, 2) / 16))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
            angles = torch.arange(ids.shape[1], device=ids.device).float()[:, None] * self.frequencies
            cos, sin = (f(torch.cat((angles, angles), -1)) for f in (torch.cos, torch.sin))
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


def tokens(model: nn.Module, shape: tuple[int, int]) -> Job:
    ids = torch.randint(0, 173, shape)
    return model, ids, ids, next_token


MODELS: dict[str, Callable[[], Job]] = {
    "bert": lambda: (Bert(), torch.randint(0, 211, (3, 23)), torch.randint(0, 5, (3,)), F.cross_entropy),
    "gpt_sdpa": lambda: tokens(Gpt(), (3, 29)),
    "llama": lambda: tokens(Llama(), (2, 37)),
}


def saved_for_backward(name: str, amp: str, mode: AbstractContextManager[Any], device: str) -> dict[str, Any]:
    """Return the bytes that a model's forward and loss keep for backward, in all, by module and by type.

    Each storage counts once, where it is first kept; parameters and empty tensors do not count.
    """
    modules, storages = ["<loss>"], dict[int, Any]()
    by_module, dtypes = Counter[str](), Counter[str]()
    with mode:
        with torch.device(device):
            model, x, target, loss = MODELS[name]()
        names = {module: of or "<model>" for of, module in model.named_modules()}
        parameters = {p.untyped_storage()._cdata for p in model.parameters()}

        def keep(tensor: Tensor) -> Tensor:
            storage, module = tensor.untyped_storage(), modules[-1]
            size, dtype = storage.nbytes(), str(tensor.dtype).removeprefix("torch.")
            if size and storage._cdata not in parameters | storages.keys():
                storages[storage._cdata] = storage  # held, so that no other gets its address
                by_module[module] += size
                dtypes[dtype] += size
            return tensor

        for module in model.modules():
            module.register_forward_pre_hook(lambda module, _: modules.append(names[module]))
            module.register_forward_hook(lambda *_: modules.pop() and None)
        autocast = nullcontext() if AMP[amp] is None else torch.autocast("cuda", dtype=AMP[amp])
        with autocast, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss(model(x), target)
    return {"unique_bytes": sum(by_module.values()), "by_module": dict(by_module), "dtypes": dict(dtypes)}


def on_cuda(name: str, amp: str) -> dict[str, Any]:
    """Return the tensors that PyTorch's code for CUDA saves for backward; its autocast assumes a GPU."""
    there = patch.object(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    with there, patch.object(torch.cuda, "is_bf16_supported", lambda *_, **__: True):
        return saved_for_backward(name, amp, FakeTensorMode(), "cuda")


def main() -> None:
    """Write what a PyTorch that was built with CUDA says of all models."""
    rows = [f'"{name}": {json.dumps({amp: on_cuda(name, amp) for amp in AMP})}' for name in MODELS]
    how = HOW.format(*torch.cuda.get_device_capability())
    models = ",\n".join(rows)
    text = f'{{"torch": "{torch.__version__}",\n"how": "{how}",\n"models": {{\n{models}}}}}\n'
    SAVED.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
