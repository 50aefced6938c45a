"""Calls that are expected to fail."""

from __future__ import annotations

import pytest
import torch

from gradlab.course import attempt


def test_an_error_is_told_in_its_first_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    attempt(torch.zeros(2, requires_grad=True).backward)
    assert capsys.readouterr().out == "RuntimeError: grad can be implicitly created only for scalar outputs\n"
    attempt(torch.optim.SGD, [torch.zeros(1, requires_grad=True) * 2])
    assert capsys.readouterr().out == "ValueError: can't optimize a non-leaf Tensor\n"


def test_a_call_that_works_is_made_once(capsys: pytest.CaptureFixture[str]) -> None:
    made: list[int] = []
    attempt(made.append, 3)
    assert made == [3]
    assert capsys.readouterr().out == "no error\n"


def test_a_mistake_of_another_kind_is_not_hidden() -> None:
    with pytest.raises(TypeError):
        attempt(len, 3)
