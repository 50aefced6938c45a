"""One thread a process: the models are small, and two workers share the cores (addopts in pyproject.toml)."""

from __future__ import annotations

import os

# Before torch is imported, and for the kernels that are started from here.
os.environ.setdefault("OMP_NUM_THREADS", "1")
