"""Many cases of one kind: some of them in each run, all of them with ``--all``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def every(step: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases for ``parametrize``: the first of each ``step`` always runs, the others are marked slow."""
    return [
        case if number % step == 0 else pytest.param(case, marks=pytest.mark.slow) for number, case in enumerate(cases)
    ]
