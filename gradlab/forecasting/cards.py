"""Graphics cards by name, and the memory that a training run needs on a card, computed without torch.

A "16 GB" card has 16 GiB of memory chips (17.2e9 bytes), of which error correction and the driver reserve a part.
``nvidia-smi`` shows the rest (15,360 MiB on a T4). PyTorch reports a little less, as the "total capacity" in its
out-of-memory messages and as ``torch.cuda.get_device_properties(0).total_memory``. This value varies a little with the
driver; ``GPUS`` contains the lowest value found for each card.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

_MIB, _GIB = 1024**2, 1024**3

GPUS: dict[str, int] = {
    "T4": int(14.56 * _GIB),  # an out-of-memory message on a "16 GB" T4: github.com/Zheng-Chong/CatVTON/issues/133
    "V100": 16_130 * _MIB,  # device properties of a 16 GB V100: github.com/ultralytics/yolov3, README
    "L4": int(22.03 * _GIB),  # messages on a "24 GB" L4 name 22.03 to 22.17 GiB; nvidia-smi shows 23,034 MiB
    "A10G": 22_587 * _MIB,  # device properties in TorchCodec's tutorial "Accelerated video decoding on GPUs"
    "RTX 4090": int(23.52 * _GIB),  # github.com/pytorch/torchchat/issues/1341; older drivers report up to 23.68 GiB
    "RTX 3090": int(23.56 * _GIB),  # messages name up to 23.70 GiB; github.com/vllm-project/vllm/issues/26863 has 23.57
    "A100-40": 42_298_834_944,  # deviceQuery on an A100-SXM4-40GB: github.com/bottlerocket-os/bottlerocket/pull/3873
    "L40S": int(44.39 * _GIB),  # messages name 44.39 to 44.53 GiB: github.com/vllm-project/vllm/issues/15598
    "H100": int(79.10 * _GIB),  # messages on 80 GB H100s name 79.10 to 79.33 GiB; nvidia-smi shows 81,559 MiB
    "A100-80": int(79.14 * _GIB),  # out-of-memory messages on 80 GB A100s name 79.14 to 79.35 GiB
    "H200": int(139.72 * _GIB),  # messages name 139.72 (NVL) to 139.81 GiB; github.com/ai-bot-pro/achatbot: 143,156 MiB
    "B200": int(178.35 * _GIB),  # messages name 178.35 and 178.36 GiB; github.com/ai-bot-pro/achatbot: 182,642 MiB
}
"""Card name -> usable bytes, the smallest card first."""

SHOWN = ("T4", "L4", "A100-40", "A100-80", "H100")
"""The cards that tables and lists show by default."""

_HOPPER_OR_LATER = ("H100", "H200", "B200")
"""The cards of compute capability 9.0 or later; source: developer.nvidia.com/cuda-gpus."""
WORKSPACE_BYTES = 2 * (4096 * 1024 * 2 + 16 * 1024 * 8)
"""Bytes that two cuBLAS handles (forward and autograd thread) take from the allocator on cards before Hopper.

Source: ``getChosenWorkspaceSize`` in ``aten/src/ATen/cuda/CublasHandlePool.cpp``; CUBLAS_WORKSPACE_CONFIG overrides it.
"""
WORKSPACE_BYTES_HOPPER = 2 * 4096 * 1024 * 8
"""Bytes that two cuBLAS handles take from the allocator on cards of compute capability 9.0 or later."""

RESERVE_MARGIN = 0.15
"""Memory that the allocator reserves beyond the allocated peak, as a fraction of that peak.

In 17 published measurements, the median ratio of reserved to allocated memory is 1.16 (1.11 in ten measurements of
transformers and speech models). None of the ten reserved sizes in ``tests/forecasting/published.toml`` exceeds 1.15
times our forecast of allocated memory. Before PyTorch runs out of memory, it frees its unused cache: the median ratio
in 21 out-of-memory messages is 1.04.
"""
CUDA_CONTEXT_BYTES = 650_000_000
"""Bytes that CUDA's context uses before any tensor is allocated: the non-PyTorch memory in out-of-memory messages.

The messages name 0.1 GiB on a T4, 0.3 on an RTX 3090 or A10G, 0.5 on an RTX 4090, L40S or A100, and 0.66 on an H100.
"""

_UNITS = {"MB": 10**6, "GB": 10**9, "MIB": _MIB, "GIB": _GIB}
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,12}(?=\s*[MG]))?)\s*([MG]I?B)?")
_NOISE = re.compile(r"RTX|GB$|(?<=\w)[\s_-]+")  # optional parts of a name
_BY_NAME = {_NOISE.sub("", name): name for name in GPUS}
_ALLOWED = f"one of {', '.join(GPUS)}, a size such as '24 GB' or '24 GiB', or a whole number of bytes above 0"


@dataclass(frozen=True)
class Need:
    """The bytes that a training run needs on a card."""

    tensors: int
    """Bytes that PyTorch's tensors request at the peak."""
    workspaces: int = WORKSPACE_BYTES
    """Bytes that cuBLAS takes from the allocator."""

    @property
    def allocated(self) -> int:
        """Bytes that ``torch.cuda.max_memory_allocated()`` would return."""
        return self.tensors + self.workspaces

    @property
    def reserved(self) -> int:
        """Bytes that ``torch.cuda.max_memory_reserved()`` would likely return."""
        return math.ceil(self.allocated * (1 + RESERVE_MARGIN))

    @property
    def total(self) -> int:
        """Bytes that the card must have in total, including CUDA's context."""
        return self.reserved + CUDA_CONTEXT_BYTES

    def room(self, usable: int) -> int:
        """Return the largest number of bytes of tensors for which ``total`` stays within ``usable``."""
        return math.floor((usable - CUDA_CONTEXT_BYTES) / (1 + RESERVE_MARGIN)) - self.workspaces


def need_on(card: str | int | None, tensors: int) -> Need:
    """Return the Need of a run with ``tensors`` bytes of tensors; an unnamed card is assumed to precede Hopper."""
    hopper = card is not None and card_name(card) in _HOPPER_OR_LATER
    return Need(tensors, WORKSPACE_BYTES_HOPPER if hopper else WORKSPACE_BYTES)


def card_name(card: str | int) -> str | None:
    """Return a card's name in ``GPUS``, such as "A100-80" for "a100 80gb", or None for a size or a number of bytes.

    Raises ValueError or TypeError like ``usable_bytes``.
    """
    return _read(card)[0]


def usable_bytes(card: str | int) -> int:
    """Return the usable bytes of a card, given by its name, a size ("24 GB", "24 GiB") or a number of bytes.

    GB is 10**9 bytes, GiB is 2**30. Raises ValueError or TypeError for other values; the message lists what is allowed.
    """
    return _read(card)[1]


def _read(card: str | int) -> tuple[str | None, int]:
    if isinstance(card, bool) or not isinstance(card, (str, int)):
        raise TypeError(f"card must be {_ALLOWED}, got {card!r}")
    text = str(card).strip().upper()
    if isinstance(card, str) and (name := _BY_NAME.get(_NOISE.sub("", text))) is not None:
        return name, GPUS[name]
    match = _SIZE.fullmatch(text)
    size = 0 if match is None else int(Fraction(match[1]) * _UNITS.get(match[2], 1))
    if size < 1:
        raise ValueError(f"card must be {_ALLOWED}, got {card!r}")
    return None, size
