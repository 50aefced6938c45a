"""Checks of answers that do anything: each gives a verdict, and leaves the kernel as it was."""

from __future__ import annotations

import functools
import json
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch
from process_state import nothing_left
from torch import nn

from gradlab.course.exercises import exercise
from gradlab.course.exercises.checking import variant


class Unwritable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


class NotEvenAnException(BaseException): ...


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
VALUES = {
    "sparse": torch.ones(1).to_sparse(),
    "meta": torch.empty(4, device="meta"),
    "complex": torch.ones(4, dtype=torch.complex64),
    "signalling NaN": Decimal("sNaN"),
    "no repr": Unwritable(),
    "no ==": Incomparable(),
    "an array in a list": [np.ones(2)] * 6,
    "contains itself": CIRCLE,
}


def unruly(*arguments: object) -> None:
    torch.nn.modules.module.register_module_forward_pre_hook(print)
    torch.nn.modules.module.register_module_full_backward_hook(lambda *call: None)
    torch.nn.modules.module.register_module_parameter_registration_hook(lambda *call: None)
    sys.modules["torch.optim.optimizer"].register_optimizer_step_pre_hook(lambda *call: None)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")


def test_what_an_answer_sets_for_all_of_pytorch_is_put_back() -> None:
    with nothing_left():
        assert exercise("gradient_of_each").check(unruly).state == "not yet"


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_whatever_is_returned_is_a_verdict(value: Any) -> None:
    for name, answer in (("gradient_of_each", lambda *args: value), ("amp_order", value)):  # of numbers, of words
        verdict = exercise(name).check(answer)
        assert verdict.state == "not yet"
        assert len(verdict._repr_mimebundle_()["text/plain"]) < 2000


@pytest.mark.parametrize("error", [NotEvenAnException("own"), StopIteration(), KeyboardInterrupt()], ids=repr)
def test_whatever_is_raised_is_a_verdict_but_ctrl_c(error: BaseException) -> None:
    def answer(*args: Any) -> None:
        raise error

    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            exercise("windows_of_four").check(answer)
    else:
        assert type(error).__name__ in exercise("windows_of_four").check(answer).remark


def reads(*args: Any) -> None:
    json.loads("{")


@pytest.mark.slow
@pytest.mark.parametrize("answer", [reads, lambda *args: reads(), functools.partial(reads, 1), torch.no_grad()(reads)])
def test_the_line_of_the_cell_that_raises_is_told(answer: Callable[..., None]) -> None:
    remark = exercise("windows_of_four").check(answer).remark
    assert remark.startswith("It raises JSONDecodeError: Expecting property name"), remark
    line = reads.__code__.co_firstlineno + 1
    assert f', in line {line} of the cell: `json.loads("{{")`' in remark, remark


def test_an_error_in_no_cell_has_no_line() -> None:
    assert "of the cell" not in exercise("windows_of_four").check(json.loads).remark


def grad_mode_off(*args: Any) -> None:
    torch.set_grad_enabled(False)


def autocast_left_on(*args: Any) -> None:
    torch.autocast("cpu", dtype=torch.bfloat16).__enter__()


def inference_left_on(*args: Any) -> None:
    grad_mode_off.mode = torch.inference_mode()  # type: ignore[attr-defined]
    grad_mode_off.mode.__enter__()  # type: ignore[attr-defined]


def seeds(*args: Any) -> None:
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)


@pytest.mark.slow
@pytest.mark.parametrize("rude", [grad_mode_off, autocast_left_on, inference_left_on, seeds])
def test_the_kernel_is_as_before(rude: Callable[..., None]) -> None:
    def state() -> list[Any]:
        torch.autocast_increment_nesting()
        return [
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu"),
            torch.autocast_decrement_nesting(),
            torch.get_default_dtype(),
            torch.get_default_device(),
            sys.getrecursionlimit(),
            random.getstate(),
            np.random.get_state()[1].tolist(),  # type: ignore[index, call-overload, unused-ignore]
            torch.get_rng_state().tolist(),
        ]

    for name, enabled in (("windows_of_four", True), ("decay_groups", False)):
        with torch.set_grad_enabled(enabled):
            before = state()
            assert exercise(name).check(rude).state == "not yet"
            assert state() == before
    assert nn.Linear(1, 1)(torch.ones(1)).dtype is torch.float32


def train(model: nn.Module, loss_fn: Any, batches: Any, lr: float) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for start in range(0, len(batches), 4):
        optimizer.zero_grad()
        for x, y in batches[start : start + 4]:
            (loss_fn(model(x), y) / 4).backward()
        optimizer.step()


@pytest.mark.slow
def test_a_right_answer_is_right_in_two_threads_at_once() -> None:
    with ThreadPoolExecutor(2) as threads:
        verdicts = list(threads.map(lambda _: exercise("windows_of_four").check(train), range(2)))
    assert all(verdicts), verdicts


def test_a_variant_of_a_solution_needs_its_parts() -> None:
    assert variant("adds", ("5 * w", "6 * w"), ("== 7", "== 8"))(lambda loss, w: loss.backward()) is True
    with pytest.raises(ValueError, match=r"the solution of adds must contain 'slope'"):
        variant("adds", ("slope", "w"))
