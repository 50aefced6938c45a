"""Many cases of one kind: some of them in each run, more of them with ``--all``, and all of them by night."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def every(step: int, cases: Iterable[Any], by_day: int = 1) -> list[Any]:
    """Return the cases for ``parametrize``: the first of each ``step`` always runs, the others are marked.

    Of these, the first of each ``by_day`` runs with ``--all``, and the others run by night only.
    """
    marked: list[Any] = []
    for number, case in enumerate(cases):
        mark = pytest.mark.slow if (number % step - 1) % by_day == 0 else pytest.mark.nightly
        marked.append(case if number % step == 0 else pytest.param(case, marks=mark))
    return marked
