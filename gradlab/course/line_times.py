"""Where the time of a training loop goes: seconds for each of its lines."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import nn

LINES = ("next batch", "forward", "backward", "step", "zero_grad")


@dataclass(frozen=True)
class LineTimes:
    """Seconds that each line of the loop takes for a batch, in the middle of all batches."""

    seconds: dict[str, float]

    def share(self, line: str) -> float:
        """Return the part of the whole that a line takes."""
        return self.seconds[line] / sum(self.seconds.values())

    def __repr__(self) -> str:
        shares = ", ".join(f"{line} {self.share(line):.0%}" for line in self.seconds)
        return f"{shares} of {1000 * sum(self.seconds.values()):.2f} ms a batch"


def time_lines(model: nn.Module, loss_fn: Callable[..., Any], batches: Iterable[Any]) -> LineTimes:
    """Train over these batches twice with plain SGD, clearing with zeros, and return the times of the second round."""
    device = next(model.parameters()).device
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    laps: dict[str, list[float]] = {}
    for _ in range(2):
        laps, last = defaultdict(list), time.perf_counter()
        for x, y in batches:
            last = _lap(laps["next batch"], last, device)
            loss = loss_fn(model(x.to(device)), y.to(device))
            last = _lap(laps["forward"], last, device)
            loss.backward()
            last = _lap(laps["backward"], last, device)
            optimizer.step()
            last = _lap(laps["step"], last, device)
            optimizer.zero_grad(set_to_none=False)
            last = _lap(laps["zero_grad"], last, device)
    return LineTimes({line: median(laps[line]) for line in LINES})


def _lap(laps: list[float], last: float, device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()  # Python runs ahead of a GPU: let it finish first
    now = time.perf_counter()
    laps.append(now - last)
    return now
