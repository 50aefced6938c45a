"""What the memory panel costs: a playing Lab on digits with it and without it, in CPU seconds an update.

Run: python tests/benchmarks/bench_lab_memory.py
"""

from __future__ import annotations

import statistics
import time

from gradlab import Lab

ROUNDS = 7
PANELS = ["loss", "gradient", "picture"]
SPEEDS = {"full speed": {"seconds": 0.01}, "4 updates a frame": {"updates": 4}, "1 update a frame": {"updates": 1}}
FRAMES = 40


def cost(panels: list[str], due: dict[str, float]) -> float:
    """Return CPU seconds for an update while a Lab plays: training, looking, drawing and encoding."""
    lab = Lab("digits", panels=panels)
    lab.run(20)
    desk = lab.controller
    before, began = lab.runner.updates, time.process_time()
    for _ in range(FRAMES):
        with desk.lock:
            desk.runner.watch_memory = "memory" in panels and desk.screen.due("memory")  # as while it plays
            desk.runner.advance(**due)
            desk.draw(skip_recent=True)
    return (time.process_time() - began) / (lab.runner.updates - before)


def main() -> None:
    """Print the ratio for each speed."""
    for name, due in SPEEDS.items():
        ratios = []
        for _ in range(ROUNDS):
            without = cost(PANELS, due)
            ratios.append(cost([*PANELS, "memory"], due) / without)
        rounded = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
        print(f"{name}: {statistics.median(ratios):.2f} times the cost without the memory panel ({rounded})")


if __name__ == "__main__":
    main()
