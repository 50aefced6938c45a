"""What decides how much memory an update takes, as one value, and the plain PyTorch loop that it stands for."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

CLASSES = 10
"""Outputs of the model."""
BEFORE_FORWARD, BEFORE_BACKWARD, AFTER_STEP = "before forward", "before backward", "after step"
_OPTIMIZER = {
    "sgd": "torch.optim.SGD(model.parameters(), lr=0.01)",
    "momentum": "torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)",
    "adam": "torch.optim.Adam(model.parameters(), lr=0.001)",
}
_DTYPE = {"bf16": "torch.bfloat16", "fp16": "torch.float16"}
_INDENT = "    "


@dataclass(frozen=True)
class PeakSettings:
    """A stack of layers and the way in which it is trained."""

    width: int = 64
    """Units of each hidden layer."""
    depth: int = 6
    """Hidden layers."""
    batch: int = 128
    """Rows of one micro-batch."""
    optimizer: str = "adam"
    set_to_none: bool = True
    place: str = BEFORE_FORWARD
    """Where ``zero_grad`` stands."""
    accumulate: int = 1
    """Micro-batches of one update."""
    amp: str = "off"
    checkpoint: bool = False

    def put_back(self, name: str, start: PeakSettings) -> PeakSettings:
        """Return a copy in which one setting is what it was at the start."""
        change: dict[str, Any] = {name: getattr(start, name)}
        return replace(self, **change)

    def changed_from(self, start: PeakSettings) -> list[str]:
        """Return the names of the settings that differ from the start."""
        return [each.name for each in fields(self) if getattr(self, each.name) != getattr(start, each.name)]

    @property
    def segments(self) -> int:
        """Into how many segments checkpointing cuts the model: about the square root of the number of its modules."""
        return max(2, round(math.sqrt(2 * self.depth + 1)))


def peak_source(settings: PeakSettings) -> str:
    """Return the program that is measured: the text that is shown is the text that runs."""
    return "\n".join([*_imports(settings), "", *_setup(settings), "", *_updates(settings)]) + "\n"


def _imports(settings: PeakSettings) -> list[str]:
    lines = ["import torch", "from torch import nn", "from torch.nn.functional import cross_entropy"]
    return [*lines, *["from torch.utils.checkpoint import checkpoint_sequential"] * settings.checkpoint]


def _setup(settings: PeakSettings) -> list[str]:
    width, several = settings.width, settings.accumulate > 1
    batch = f"torch.randn({settings.batch}, {width}), torch.randint({CLASSES}, ({settings.batch},))"
    lines = [
        f"layers = [layer for _ in range({settings.depth}) for layer in (nn.Linear({width}, {width}), nn.ReLU())]",
        f"model = nn.Sequential(*layers, nn.Linear({width}, {CLASSES}))",
        f"optimizer = {_OPTIMIZER[settings.optimizer]}",
    ]
    if settings.amp == "fp16":
        lines.append('scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)')
    lines.append(f"batches = [({batch}) for _ in range({settings.accumulate})]" if several else f"x, y = {batch}")
    return lines


def _updates(settings: PeakSettings) -> list[str]:
    several, fp16 = settings.accumulate > 1, settings.amp == "fp16"
    clear = [f"optimizer.zero_grad(set_to_none={settings.set_to_none})"]
    late = settings.place == BEFORE_BACKWARD
    loss = "loss / len(batches)" if several else "loss"
    scaled = f"scaler.scale({loss})" if fp16 else f"({loss})" if several else "loss"
    step = ["scaler.step(optimizer)", "scaler.update()"] if fp16 else ["optimizer.step()"]
    each = [*_forward(settings), *(_at_first(clear) if late and several else clear * late), f"{scaled}.backward()"]
    if several:
        head = "for number, (x, y) in enumerate(batches):" if late else "for x, y in batches:"
        each = [head, *_indented(each)]
    body = [
        *(clear if settings.place == BEFORE_FORWARD else []),
        *each,
        *step,
        *(clear if settings.place == AFTER_STEP else []),
    ]
    return ["for update in range(2):  # the picture shows the second one", *_indented(body)]


def _forward(settings: PeakSettings) -> list[str]:
    lines = ["loss = cross_entropy(model(x), y)"]
    if settings.checkpoint:
        how = "use_reentrant=False, preserve_rng_state=False"
        output = f"checkpoint_sequential(model, {settings.segments}, x, {how})"
        lines = ["loss = cross_entropy(", f"{_INDENT}{output}, y", ")"]
    if settings.amp == "off":
        return lines
    return [f'with torch.autocast("cpu", dtype={_DTYPE[settings.amp]}):', *_indented(lines)]


def _at_first(clear: list[str]) -> list[str]:
    """Return lines that clear once a window, with its first micro-batch."""
    return ["if number == 0:", *_indented(clear)]


def _indented(lines: list[str]) -> list[str]:
    return [_INDENT + line for line in lines]
