"""The exercises of one notebook."""

from __future__ import annotations

from .base import Exercise

EXERCISES: tuple[type[Exercise], ...] = ()
