"""What watch refuses: each names the argument, the value and what is allowed, and leaves nothing behind."""

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
    ("arguments", "words"),
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
def test_bad_arguments_of_watch_are_named(arguments: dict[str, Any], words: str) -> None:
    with nothing_left(), pytest.raises((TypeError, ValueError), match=words):
        watch(**arguments)


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ("nan-loss", r"^select must be a list of codes such as \['missing-zero-grad'\], got 'nan-loss'$"),
        ([3], "^select: there is no code 3; there are "),
        (["nan-los"], r"^select: there is no code 'nan-los'; did you mean 'nan-loss'\?$"),
    ],
)
def test_bad_codes_of_a_filter_are_named(codes: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
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
