"""Many cases of one kind: some run each time, more with ``--all``, and all for ``--all`` with a folder or by night."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def every(step: int, cases: Iterable[Any], by_day: int = 1) -> list[Any]:
    """Return the cases for ``parametrize``: the first of each ``step`` always runs, the others are marked slow.

    Of these, the first of each ``by_day`` runs with each ``--all``. The others are also marked sampled.
    """
    marked: list[Any] = []
    for number, case in enumerate(cases):
        marks = [pytest.mark.slow] if (number % step - 1) % by_day == 0 else [pytest.mark.slow, pytest.mark.sampled]
        marked.append(case if number % step == 0 else pytest.param(case, marks=marks))
    return marked
