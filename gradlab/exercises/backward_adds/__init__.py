"""The exercises of notebook 02."""

from __future__ import annotations

from .gradient_of_each import GradientOfEach
from .memory_gradient import MemoryGradient
from .truncated import Truncated

EXERCISES = (GradientOfEach, MemoryGradient, Truncated)
