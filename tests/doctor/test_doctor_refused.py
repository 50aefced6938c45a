"""Arguments that watch refuses: the error names argument, value and valid values, and nothing is left behind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from process_state import nothing_left
from torch import nn

from gradlab.doctor import FindingFilter, watch

_COUNT, _SECONDS = (
    "watch: updates must be a whole number from 1, got",
    "watch: seconds must be a number of seconds above",
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"updates": "x"}, f"^{_COUNT} 'x'$"),
        ({"updates": 1.5}, f"^{_COUNT} 1.5$"),
        ({"updates": True}, f"^{_COUNT} True$"),
        ({"updates": 0}, f"^{_COUNT} 0$"),
        ({"seconds": "x"}, f"^{_SECONDS} 0, got 'x'$"),
        ({"seconds": math.nan}, f"^{_SECONDS} 0, got nan$"),
        ({"seconds": math.inf}, f"^{_SECONDS} 0, got inf$"),
        ({"seconds": -1.0}, f"^{_SECONDS} 0, got -1.0$"),
        ({"seconds": True}, f"^{_SECONDS} 0, got True$"),
    ],
)
def test_bad_arguments_of_watch_are_named(arguments: dict[str, Any], message: str) -> None:
    with nothing_left(), pytest.raises((TypeError, ValueError), match=message):
        watch(**arguments)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ("nan-loss", r"^select must be a list of codes such as \['missing-zero-grad'\], got 'nan-loss'$"),
        ([3], "^select: there is no code 3; the codes are "),
        (["nan-los"], r"^select: there is no code 'nan-los'; did you mean 'nan-loss'\?$"),
    ],
)
def test_bad_codes_of_a_filter_are_named(codes: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        FindingFilter(select=codes)


def test_limits_may_be_numbers_of_numpy() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    limits: Any = {"updates": np.int64(2), "seconds": np.float32(60)}
    with watch(model, optimizer, **limits) as report:
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    assert "2 updates of " in report.watched
