"""The settings of the two ranks, and the plain DDP loop that each of them stands for, as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

MOMENTS = 24
"""Statements that are stepped through: 6 updates of 4, 4 updates of 6 or 3 updates of 8."""
SAMPLES_EACH = 16
"""Of a micro-batch, both ranks together."""
LR = 0.15
ACCUMULATE = (1, 2, 3)
NO_SYNC = ("off", "all but the last", "all but the first")
FORGETS = ("none", "rank 1", "both")
BATCHES = ("8 and 8", "12 and 4", "12 and 4, weighted")


@dataclass(frozen=True)
class LoopSettings:
    """What the loop of both ranks is made of; each field has one of the values listed above."""

    accumulate: int = 1
    no_sync: str = "off"
    """Which micro-batches of a window are inside ``no_sync()``."""
    forgets: str = "none"
    """Which ranks never call ``zero_grad()``."""
    batches: str = "8 and 8"

    @property
    def statements(self) -> int:
        """Statements of one update: zero_grad, a backward and an all-reduce for each micro-batch, step."""
        return 2 + 2 * self.accumulate

    @property
    def updates(self) -> int:
        """Updates in all."""
        return MOMENTS // self.statements

    @property
    def split(self) -> tuple[int, int]:
        """Samples of a micro-batch in rank 0 and in rank 1."""
        return (8, 8) if self.batches == "8 and 8" else (12, 4)

    def clears(self, rank: int) -> bool:
        """Whether this rank calls ``zero_grad()``."""
        return self.forgets == "none" or (self.forgets == "rank 1" and rank == 0)

    @property
    def source(self) -> str:
        """The loop, in plain PyTorch; ``windows`` holds this rank's share of every micro-batch."""
        clear = {
            "none": ["    optimizer.zero_grad()"],
            "rank 1": ["    if rank == 0:  # rank 1 forgets", "        optimizer.zero_grad()"],
            "both": ["    # optimizer.zero_grad() is forgotten"],
        }[self.forgets]
        window = self.accumulate > 1
        loss = ["loss = mse_loss(model(x), y)"]
        if self.batches == "12 and 4, weighted":
            loss.append(f"loss = loss * len(x) * 2 / {SAMPLES_EACH}  # 2 ranks, {SAMPLES_EACH} samples")
        if window:
            loss.append(f"loss = loss / {self.accumulate}")
        loss.append("loss.backward()")
        counted = window and self.no_sync != "off"
        quiet = f"i < {self.accumulate - 1}" if self.no_sync == "all but the last" else "i > 0"
        within = [f"with model.no_sync() if {quiet} else nullcontext():"] if counted else []
        body = [*within, *(f"{'    ' * counted}{line}" for line in loss)]
        return "\n".join(
            [
                "model = DDP(model)",
                f"optimizer = torch.optim.SGD(model.parameters(), lr={LR})",
                "for window in windows:",
                *clear,
                "    for i, (x, y) in enumerate(window):" if counted else "    for x, y in window:",
                *(f"        {line}" for line in body),
                "    optimizer.step()",
            ]
        )

    def lines(self, statement: str) -> tuple[int, int]:
        """Return the first and the last line of the text that belong to a statement; (0, 0) before the first."""
        lines = self.source.splitlines()
        found = {"zero_grad": "zero_grad", "backward": "backward", "all-reduce": "backward", "step": "step()"}
        word = found.get(statement)
        at = [number for number, line in enumerate(lines, 1) if word and word in line]
        return (at[0], at[0]) if at else (0, 0)


def all_settings() -> Iterator[LoopSettings]:
    """Yield every combination that differs in what it does."""
    for accumulate, no_sync, forgets, batches in product(ACCUMULATE, NO_SYNC, FORGETS, BATCHES):
        if accumulate > 1 or no_sync == "off":
            yield LoopSettings(accumulate, no_sync, forgets, batches)
