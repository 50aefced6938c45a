"""The exercises of notebook 05."""

from __future__ import annotations

from .bytes_moved import BytesMoved
from .gradient_norm import GradientNorm
from .saved import Saved

EXERCISES = (GradientNorm, BytesMoved, Saved)
