"""Seconds and memory of each notebook: ``python tests/benchmarks/bench_notebooks.py [names]``.

Targets: 25 s and 450 MB (450 million bytes) resident on 2 cores. Exits with 1 if one is missed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import nbformat
import psutil
from nbclient import NotebookClient

MOST_SECONDS, MOST_BYTES = 25, 450e6
ROOT = Path(__file__).parents[2]


async def measure(path: Path) -> tuple[float, float]:
    """Return the seconds of a run and the largest resident size of its kernel in bytes."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}})
    kernels_before = {child.pid for child in psutil.Process().children(recursive=True)}
    began, peak = time.perf_counter(), 0.0
    run = asyncio.ensure_future(client.async_execute())
    while not run.done():
        for child in psutil.Process().children(recursive=True):
            if child.pid not in kernels_before:
                try:
                    peak = max(peak, child.memory_info().rss)
                except psutil.Error:  # it has ended in between
                    continue
        await asyncio.sleep(0.05)
    await run
    return time.perf_counter() - began, peak


def main() -> int:
    """Measure every notebook."""
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    missed = False
    for path in [Path(name) for name in sys.argv[1:]] or sorted((ROOT / "notebooks").glob("*.ipynb")):
        seconds, peak = asyncio.run(measure(path))
        missed |= seconds > MOST_SECONDS or peak > MOST_BYTES
        limits = f"(at most {MOST_SECONDS} s and {MOST_BYTES / 1e6:.0f} MB)"
        print(f"{path.name:32} {seconds:5.1f} s  {peak / 1e6:5.0f} MB  {limits}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
