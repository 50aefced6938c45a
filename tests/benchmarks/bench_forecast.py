"""Time and memory of a forecast, each in a new interpreter.

    python tests/benchmarks/bench_forecast.py

Only ``import torch`` is not counted; "cpu" is CPU time, which depends less on other load; "again" is a second forecast
in the same interpreter. Exits with 1 if a target is missed.
"""

from __future__ import annotations

import subprocess
import sys

# name, options of forecast, targets: seconds, GiB resident
CASES = [
    ("gpt2-1.5b", "", None, 1.5),
    ("llama-8b", "", 3.0, 1.5),
    ("llama-8b", "batch=4, checkpoint=True", None, 1.5),
    ("llama-70b", "", None, 1.5),
    ("llama-405b", "", 20.0, 1.5),
]
PROGRAM = """
import resource, time, torch
began, cpu = time.perf_counter(), time.process_time()
from gradlab.forecasting import forecast
from gradlab import Recipe
recipe = Recipe(optimizer="adamw", amp="bf16")
first_forecast = forecast({name!r}, recipe, {options})
first, cpu = time.perf_counter() - began, time.process_time() - cpu
forecast({name!r}, recipe, {options})
again = time.perf_counter() - began - first
resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
print(first, cpu, again, resident, first_forecast.peak / 1024**3)
"""


def main() -> int:
    """Print the figures; return 1 if one misses its target."""
    missed = 0
    print(f"{'':34}{'first':>9}{'cpu':>9}{'again':>9}{'resident':>12}{'the peak':>20}")
    for name, options, seconds, gigabytes in CASES:
        program = PROGRAM.format(name=name, options=options)
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        first, cpu, again, resident, peak = map(float, result.stdout.split())
        met = (seconds is None or first <= seconds) and resident <= gigabytes
        missed += not met
        row = f"{first:7.1f} s{cpu:7.1f} s{again:7.1f} s{resident:8.2f} GiB{peak:16,.1f} GiB"
        target = f"  <= {seconds} s" if seconds else ""
        print(f"{f'{name} {options}':34}{row}{target}{'' if met else '  MISSED'}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
