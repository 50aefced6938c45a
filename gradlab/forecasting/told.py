"""What a forecast counts and what it leaves out, in words, with direction and size."""

from __future__ import annotations

from .cuda_rules import autocast_lists
from .reserve import CUDA_CONTEXT
from .simulate import SimulatedUpdate
from .training import Training
from .workload import Workload

_CPU = (
    "Counted: what PyTorch's tensors ask for over the second update, when the optimizer has its state, by the rules of "
    "a CPU, which are not those of a GPU: autocast casts less there, attention with dropout keeps matrices of context "
    "times context, and dropout's mask is as wide as its input. The same training took 8 to 35 % more on a GPU with "
    "AMP, and less where attention has dropout."
)
_CUDA = (
    "Counted: what PyTorch's tensors ask for over the second update, when the optimizer has its state, by CUDA's "
    "rules: what autocast casts, one byte for each element of dropout's mask, and fused attention, as on a card of "
    "compute capability 8.0 or later."
)
_AUTOCAST = "Autocast casts what this PyTorch lists; older ones ran other operations in float32."
_NO_HEADER = "This PyTorch came without its header autocast_mode.h, so autocast casts what it does on a CPU."
_NOT_COUNTED = (
    "Not counted, so that a real run takes more: what a kernel needs while it works (cuDNN's convolutions: tens to "
    "some hundreds of MiB; the backward of attention: its gradients once more in float32), and the allocator's "
    "rounding (to 512 bytes, and up to 1 MiB at the end of a large block: 2 % of minGPT's GPT-2 XL)."
)
_COMPILED = (
    "The model is compiled (torch.compile), and this is the forecast of running it eagerly; compiled code keeps less, "
    "for Llama 3.2 3B 51.0 GiB instead of 60.0 (README of torchtune)."
)


_RECURRENT = (
    "Recurrent layers (nn.LSTM, nn.GRU, nn.RNN) are counted as without cuDNN: their activations come out too high, an "
    "LSTM's about twice, a GRU's several times; cuDNN's own reserve, which only a GPU tells, is not in it."
)


def covers(training: Training, found: SimulatedUpdate, margin: float, shard: str | None, workload: Workload) -> str:
    """Return what a forecast counts and what not."""
    steps = []
    if workload.update is None:
        way = "all parameters at once, as it does on a GPU" if training.at_once else "one parameter after another"
        steps = [f"The optimizer updates {way}."] * (training.optimizer in (None, "foreach", "for-loop"))
    if training.device == "cuda":
        parts = [_CUDA]
        if training.recipe.amp != "off":
            parts.append(_AUTOCAST if autocast_lists() else _NO_HEADER)
        parts += steps
        parts.append(
            f"A card must hold more: cuBLAS' workspaces, what the allocator reserves above ({margin:.0%}, see "
            f"margin=) and CUDA's context ({CUDA_CONTEXT / 1e9:.2f} GB)."
        )
        parts += [_NOT_COUNTED, *[_RECURRENT] * found.recurrent]
    else:
        parts = [_CPU, *steps]
    if workload.compiled:
        parts.append(_COMPILED)
    if training.recipe.amp == "fp16":
        parts.append("No gradient overflows: every step is taken.")
    if found.micro_batches < training.recipe.accumulate:
        of = training.recipe.accumulate
        parts.append(f"Of {of} micro-batches {found.micro_batches} are run; the others repeat.")
    if shard is not None:
        parts.append("The share of one card is arithmetic; what the exchange between cards needs is not counted.")
    return " ".join(parts)
