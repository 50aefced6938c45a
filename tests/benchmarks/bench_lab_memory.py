"""What the memory panel costs: a playing Lab on digits with it and without it, in CPU seconds an update.

Run: python tests/benchmarks/bench_lab_memory.py
"""

from __future__ import annotations

import statistics
import time

from gradlab import Lab

ROUNDS = 7
PANELS = ["loss", "gradient", "picture"]
SPEEDS = {
    "full speed": {"seconds": 0.025, "every": 28.0},
    "4 updates a frame": {"updates": 4, "every": 16.7},
    "1 update a frame": {"updates": 1, "every": 16.7},
}
FRAMES = 40


def cost(panels: list[str], speed: dict[str, float]) -> float:
    """Return CPU seconds for an update while a Lab plays: training, looking, drawing and encoding."""
    lab = Lab("digits", panels=panels)
    lab.run(20)
    before, began = lab.runner.updates, time.process_time()
    for number in range(FRAMES):
        lab.handle({"do": "frames", "count": 1, "n": number, "client": "bench", **speed})
    return (time.process_time() - began) / (lab.runner.updates - before)


def main() -> None:
    """Print the ratio for each speed."""
    for name, speed in SPEEDS.items():
        ratios = []
        for _ in range(ROUNDS):
            without = cost(PANELS, speed)
            ratios.append(cost([*PANELS, "memory"], speed) / without)
        rounded = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
        print(f"{name}: {statistics.median(ratios):.2f} times the cost without the memory panel ({rounded})")


if __name__ == "__main__":
    main()
