"""What ``import gradlab`` costs in a fresh interpreter, and that it brings nothing heavy along.

    python tests/benchmarks/bench_import.py

Exits with 1 if the best of ten takes longer than the target.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

TARGET = 50.0  # milliseconds
TIMES = 10
HEAVY = ("torch", "matplotlib", "ipywidgets", "numpy")
PROGRAM = f"""
import sys, time
began = time.perf_counter()
import gradlab
took = time.perf_counter() - began
print(1000 * took, *(name for name in {HEAVY} if name in sys.modules))
"""


def once() -> tuple[float, list[str]]:
    """Return the milliseconds of one import, and which heavy modules came along."""
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    took, *heavy = result.stdout.split()
    return float(took), heavy


def main() -> int:
    results = [once() for _ in range(TIMES)]
    best, median = min(took for took, _ in results), statistics.median(took for took, _ in results)
    heavy = sorted({name for _, names in results for name in names})
    missed = best > TARGET or bool(heavy)
    print(f"import gradlab: best of {TIMES} {best:.1f} ms, median {median:.1f} ms, heavy modules: {heavy or 'none'}")
    print(f"target: at most {TARGET:g} ms and no heavy module: {'MISSED' if missed else 'met'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
