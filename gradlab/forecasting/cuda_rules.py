"""CUDA's rules for fake tensors on the CPU: autocast's casts, and the tensors that kernels save for backward.

A forecast runs on tensors without memory, and a PyTorch built without CUDA cannot train on fake CUDA tensors, because
autograd asks the device for its streams. So the fakes are on the CPU. Where a GPU differs, a kernel in the dispatcher
runs before the CPU's kernel, even for operations called from C++. These kernels have their own dispatch key, which only
the thread of a forecast includes. They apply these rules:

- Autocast casts by CUDA's lists of operations, which are read from a header in the installed PyTorch.
- Dropout saves a mask of one byte per element (``native_dropout``); on the CPU, the mask has the input's dtype.
- Attention (``scaled_dot_product_attention``) runs a fused kernel where CUDA would, even with dropout. The conditions
  for a fused kernel are those of ``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp``.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .. import _torch
from .._process import Patches

_aten = torch.ops.aten
_HEADER = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
_MACRO = re.compile(r"#define AT_FORALL_(\w+)\(_\)((?:.*\\\n)*.*)")
_ENTRY = re.compile(r"_\((?:ADD_NS\(\w+\),\s*\\\s*\"([\w.]+)\"|(\w+)(?:, (\w+))?)")
_KEY = "AutocastIPU"
"""The kernels' dispatch key. It precedes AutocastCPU, each thread includes or excludes it, and no tensor has it."""
_lock = threading.Lock()


class _Casts(threading.local):
    """A thread's autocast cache: id of a weight -> the weight and its cast."""

    def __init__(self) -> None:
        self.by_id: dict[int, tuple[Tensor, Tensor]] = {}


_CASTS = _Casts()


@functools.cache
def autocast_lists() -> dict[str, str]:
    """Return a dict from operations to names of autocast lists, which is empty if PyTorch's header is missing."""
    if not _HEADER.is_file():
        return {}
    policies = {}
    for policy, entries in _MACRO.findall(_HEADER.read_text(encoding="utf-8")):
        for quoted, name, overload in _ENTRY.findall(entries):
            policies[quoted or ".".join(filter(None, (name, overload)))] = policy
    return policies


def _cast(op: Any, dtype: torch.dtype, args: Any, kwargs: Any) -> Any:
    return op(*[_as(dtype, a) for a in args], **{name: _as(dtype, a) for name, a in kwargs.items()})


def _as(dtype: torch.dtype, value: Any) -> Any:
    if isinstance(value, (list, tuple)) and any(isinstance(each, Tensor) for each in value):
        return [_as(dtype, each) for each in value]
    if not _eligible(value) or value.dtype == dtype:
        return value
    cached = _CASTS.by_id.get(id(value))
    if cached is not None:
        return cached[1]
    cast = value.to(dtype)
    weight = value.requires_grad and value.is_leaf and not value._is_view() and value.dtype == torch.float32
    if weight and dtype == torch.get_autocast_dtype("cpu") and torch.is_autocast_cache_enabled():
        _CASTS.by_id[id(value)] = value, cast
    return cast


def _set_dtype(op: Any, args: Any, kwargs: Any) -> Any:
    """Call ``op`` with ``dtype=torch.float32`` unless the caller gives a dtype or autocast ignores the input."""
    arguments = dict(zip((argument.name for argument in op._schema.arguments), args, strict=False)) | kwargs
    if _eligible(args[0]) and arguments.get("dtype") is None:
        arguments["dtype"] = torch.float32
    return op(**arguments)


def _widest(args: Any) -> torch.dtype:
    flat = [each for a in args for each in (a if isinstance(a, (list, tuple)) else (a,))]
    wide = any(_eligible(each) and each.dtype == torch.float32 for each in flat)
    return torch.float32 if wide else torch.get_autocast_dtype("cpu")


def _eligible(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.dtype != torch.float64


def _dropout(x: Tensor, p: float, train: bool) -> Tensor:
    if p == 0 or not train or not x.numel():
        return x
    return _aten.native_dropout.default(x, p, train)[0]


def _softmax(kernel: Any, x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Run a softmax as on CUDA, where a kernel reads float16 and writes float32; other inputs are cast to ``dtype``."""
    if x.dtype == torch.float16 and dtype == torch.float32:
        return kernel(x, dim, True)
    return kernel(x if dtype is None else x.to(dtype), dim, False)


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Run the attention kernel that CUDA would choose on a card of compute capability 8.0 or later."""
    width, cuda = q.shape[-1], torch.backends.cuda
    fused = isinstance(q, _torch.FakeTensor) and q.ndim == 4 and width == k.shape[-1] and bool(q.numel() and k.numel())
    square = not is_causal or q.shape[-2] == k.shape[-2]
    narrow = q.dtype in (torch.float16, torch.bfloat16)
    scale_ = width**-0.5 if scale is None else scale
    flash = narrow and attn_mask is None and square and width <= 256 and width == v.shape[-1]
    if fused and flash and cuda.flash_sdp_enabled():
        padded = [torch.nn.functional.pad(t, (0, -width % 8)) if width % 8 else t for t in (q, k, v)]
        out = _aten._scaled_dot_product_flash_attention.default(*padded, dropout_p, is_causal, scale=scale_)[0]
        return out[..., :width] if width % 8 else out
    aligned = width % (8 if narrow else 4) == 0 and v.shape[-1] % (8 if narrow else 4) == 0
    if fused and aligned and q.shape[1] == k.shape[1] and q.dtype != torch.float64 and cuda.mem_efficient_sdp_enabled():
        bias = None if attn_mask is None else _bias(attn_mask, q, k)
        saves = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
        kernel = _aten._scaled_dot_product_efficient_attention.default
        return kernel(q, k, v, bias, saves, dropout_p, is_causal, scale=scale_)[0]
    math = _aten._scaled_dot_product_attention_math.default
    mask = attn_mask if attn_mask is None or attn_mask.dtype != torch.bool else _as_float(attn_mask, q.dtype)
    return math(q, k, v, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]


def _bias(mask: Tensor, q: Tensor, k: Tensor) -> Tensor:
    """Return the efficient kernel's form of ``mask``: values to add, in rows padded to 32 bytes, for every head."""
    bias, columns = _as_float(mask, q.dtype) if mask.dtype == torch.bool else mask, mask.shape[-1]
    if missing := -columns % (32 // bias.element_size()):
        bias = torch.nn.functional.pad(bias, (0, missing))[..., :columns]
    return bias.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])


def _as_float(mask: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask.logical_not(), float("-inf"))


COMPOSITES: dict[str, Callable[..., Any]] = {
    "dropout": _dropout,
    "scaled_dot_product_attention": _attention,
    "softmax.int": functools.partial(_softmax, _aten._softmax.default),
    "log_softmax.int": functools.partial(_softmax, _aten._log_softmax.default),
}
"""Name of an operation that chooses its kernel by the device -> its replacement."""
_POLICIES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "LOWER_PRECISION_FP": lambda op, args, kwargs: _cast(op, torch.get_autocast_dtype("cpu"), args, kwargs),
    "FP32": lambda op, args, kwargs: _cast(op, torch.float32, args, kwargs),
    "FP32_SET_OPT_DTYPE": _set_dtype,
    "PROMOTE": lambda op, args, kwargs: _cast(op, _widest(args), args, kwargs),
}
"""Name of an autocast list -> function that calls an operation of this list as autocast would."""


def _kernel(name: str, policy: Callable[[Any, Any, Any], Any] | None) -> Callable[..., Any]:
    """Return the kernel that runs before an operation's CPU kernels and, given a ``policy``, autocasts its inputs."""
    packet, _, overload = name.partition(".")
    op, composite = getattr(getattr(_aten, packet), overload or "default"), COMPOSITES.get(name)
    cpu, autocast = _torch.DispatchKey.CPU, _torch.DispatchKey.AutocastCPU
    excluded, below = _torch.DispatchKeySet(autocast), _torch.keyset_full_after(autocast)

    def run(keys: Any, *args: Any, **kwargs: Any) -> Any:
        if policy is not None and torch.is_autocast_enabled("cpu") and keys.has(cpu):
            with _torch.ExcludeDispatchKeyGuard(excluded):
                return policy(op, args, kwargs)
        if composite is not None:
            return composite(*args, **kwargs)
        return op.redispatch(keys & below, *args, **kwargs)

    return run


def _fused_rms_norm(keys: Any, x: Tensor, *args: Any) -> Any:
    """Run RMSNorm as one operation, so that autograd saves what it saves on CUDA; the kernel for IPU never runs."""
    key = _torch.DispatchKey
    keys = keys & _torch.keyset_full_after(key.AutocastCPU)
    if keys.has(key.AutogradCPU) and isinstance(x, _torch.FakeTensor):
        keys = keys | _torch.DispatchKeySet(_torch.spare_autograd_key)
    return _aten._fused_rms_norm.default.redispatch(keys, x, *args)


@functools.cache
def _register_kernels() -> tuple[torch.library.Library, ...]:
    """Register the kernels, once per process, and return their libraries. Only a forecast's thread runs the kernels."""
    everything, library = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    everything.fallback(torch.library.fallthrough_kernel, _KEY)
    lists, on_cuda = autocast_lists(), _registered("AutocastCUDA")
    policies = {name: _POLICIES[policy] for name, policy in lists.items() if policy in _POLICIES and name in on_cuda}
    only_on_cpu = _registered("AutocastCPU").difference(lists) if lists else ()
    for name in {*only_on_cpu, *policies, *COMPOSITES}:
        library.impl(name, _kernel(name, policies.get(name)), _KEY, with_keyset=True)
    for key in (_KEY, "IPU"):
        library.impl("_fused_rms_norm", _fused_rms_norm, key, with_keyset=True)
    return everything, library


def _clearing(clear: Callable[[], None]) -> Callable[[], None]:
    def clear_autocast_cache() -> None:
        _CASTS.by_id.clear()
        clear()

    return clear_autocast_cache


def _on_fakes(begin: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, device_type: str, dtype: torch.dtype | None = None, *args: Any, **kwargs: Any) -> None:
        if _torch.key_included(_KEY) and str(device_type).startswith("cuda"):
            device_type, dtype = "cpu", torch.get_autocast_dtype("cuda") if dtype is None else dtype
        begin(self, device_type, dtype, *args, **kwargs)

    return init


_REPLACED = Patches((torch, "clear_autocast_cache", _clearing), (torch.autocast, "__init__", _on_fakes))
"""Replacements, for all threads, of two PyTorch functions that do not go through the dispatcher."""


@contextmanager
def cuda_rules() -> Iterator[None]:
    """In the block, apply CUDA's rules, including ``torch.autocast("cuda")``, to this thread's fake CPU tensors."""
    with _lock:
        _register_kernels()
    key = _torch.spare_key
    with _torch.IncludeDispatchKeyGuard(key), _torch.SetExcludeDispatchKeyGuard(key, False), _REPLACED:
        try:
            yield
        finally:
            _CASTS.by_id.clear()


@functools.cache
def _registered(key: str) -> frozenset[str]:
    names = (name.partition("::") for name in _torch.registrations_for_key(key))
    return frozenset(name for namespace, _, name in names if namespace == "aten")
