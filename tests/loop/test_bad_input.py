"""Whatever is handed in, a refusal names the field, the value and what is allowed, and changes nothing."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gradlab import Recipe, Run, tasks

TASK = tasks.line(device="cpu")
HUGE = 10**400
EVERYTHING: list[Any] = [
    *[None, True, False, 0, 1, -1, 2, 17, HUGE, -HUGE],
    *[0.0, -0.0, 0.5, 1.0, 1.5, -0.1, 1e308, 5e-324, math.nan, math.inf, -math.inf, 1j],
    *["", "off", "OFF", "sgd", "SGD", "1", "True", "fp16 ", "nonsense", b"off", b""],
    *[[], ["off"], (), ("sgd",), {}, {"lr": 1}, set(), object, print, Fraction(1, 2)],
    *[
        np.float64("nan"),
        np.bool_(True),
        np.float32(3),
        torch.tensor(0.1),
        torch.tensor([1.0, 2.0]),
        torch.tensor(True),
    ],
]


def is_flag(value: Any) -> bool:
    return value is True or value is False


def is_positive(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= 1.7976931348623157e308  # NaN and 10**400 are neither


ALLOWED: dict[str, tuple[Callable[[Any], bool], list[str]]] = {
    "zero_grad": (is_flag, ["True or False"]),
    "set_to_none": (is_flag, ["True or False"]),
    "divide_loss": (is_flag, ["True or False"]),
    "accumulate": (lambda v: type(v) is int and 1 <= v <= 16, ["1 to 16"]),
    "amp": (lambda v: type(v) is str and v in ("off", "bf16", "fp16"), ["'off', 'bf16', 'fp16'"]),
    "optimizer": (
        lambda v: type(v) is str and v in ("sgd", "momentum", "adam", "adamw"),
        ["'sgd', 'momentum', 'adam', 'adamw'"],
    ),
    "clip": (lambda v: v is None or is_positive(v), ["None", "finite number above 0"]),
    "lr": (is_positive, ["finite number above 0"]),
}


def refusal(call: Callable[[], Any]) -> str:
    """The message of the ValueError or TypeError that the call raises; any other outcome fails the test."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert type(caught.value) in (ValueError, TypeError)
    return str(caught.value)


def name_of(value: Any) -> str:
    return repr(value).split(" at 0x")[0][:24]  # no address: two workers must collect the same names


@pytest.mark.parametrize("value", EVERYTHING, ids=name_of)
@pytest.mark.parametrize("field", ALLOWED)
def test_every_field_of_a_recipe_takes_what_it_says_and_nothing_else(field: str, value: Any) -> None:
    allowed, words = ALLOWED[field]
    if allowed(value):
        recipe = Recipe(**{field: value})
        assert getattr(recipe, field) == value
        compile(recipe.source(), "<recipe>", "exec")
        return
    message = refusal(lambda: Recipe(**{field: value}))
    assert field in message
    assert repr(value) in message
    assert all(word in message for word in words)
    assert refusal(lambda: Recipe().replace(**{field: value})) == message


def test_a_whole_number_of_numpy_is_one() -> None:
    recipe = Recipe(accumulate=np.int64(3))  # type: ignore[arg-type]
    assert type(recipe.accumulate) is int
    assert recipe == Recipe(accumulate=3)
    run = Run(TASK, recipe, seed=np.int64(3))  # type: ignore[arg-type]
    run.advance(updates=np.int64(2))  # type: ignore[arg-type]
    assert (run.seed, run.updates) == (3, 2)


def test_a_switch_that_does_not_exist() -> None:
    message = refusal(lambda: Recipe().replace(zero_grads=False))
    assert "'zero_grads'" in message
    assert "'zero_grad'" in message
    assert "zero_grads" in refusal(lambda: Recipe(zero_grads=False))  # type: ignore[call-arg]


@pytest.mark.parametrize("field", ALLOWED)
def test_a_recipe_is_frozen(field: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Recipe(), field, getattr(Recipe(), field))


@pytest.mark.parametrize("value", [v for v in EVERYTHING if not (type(v) is int and 0 <= v < 2**32)], ids=name_of)
def test_the_seed_of_a_run(value: Any) -> None:
    message = refusal(lambda: Run(TASK, Recipe(), seed=value))
    assert "seed" in message
    assert repr(value) in message
    assert "0 to 2**32 - 1" in message


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1])
def test_the_seeds_that_a_run_takes(seed: int) -> None:
    Run(TASK, Recipe(), seed=seed).close()


@pytest.mark.parametrize("seed", [2**32, 2**63, -1])
def test_a_seed_out_of_range(seed: int) -> None:
    message = refusal(lambda: Run(TASK, seed=seed))
    assert repr(seed) in message
    assert "0 to 2**32 - 1" in message


@pytest.mark.parametrize("value", [*EVERYTHING, tasks.line, SimpleNamespace(name="x", build=print)], ids=name_of)
def test_the_task_of_a_run(value: Any) -> None:
    message = refusal(lambda: Run(value))
    assert "task" in message
    assert repr(value) in message
    assert "gradlab.tasks" in message


@pytest.mark.parametrize("value", [v for v in EVERYTHING if v is not None], ids=name_of)
def test_the_recipe_of_a_run(value: Any) -> None:
    message = refusal(lambda: Run(TASK, value))
    assert "recipe" in message
    assert repr(value) in message
    assert "gradlab.Recipe" in message


@pytest.mark.parametrize("value", [*EVERYTHING, Recipe], ids=name_of)
def test_the_recipe_of_a_switch(value: Any) -> None:
    run = Run(TASK)
    before = run.source
    message = refusal(lambda: run.switch(value))
    assert "recipe" in message
    assert repr(value) in message
    assert "gradlab.Recipe" in message
    assert run.source == before
    assert run.advance(updates=1) == 1


@pytest.mark.parametrize("value", [v for v in EVERYTHING if not isinstance(v, str)], ids=name_of)
def test_the_text_of_an_edit(value: Any) -> None:
    run = Run(TASK)
    message = refusal(lambda: run.edit(value))
    assert "text" in message
    assert repr(value) in message
    assert "string" in message
    assert run.advance(updates=1) == 1


NOT_UPDATES = [v for v in EVERYTHING if v is not None and not (type(v) is int and v >= 0)]
ZERO = [v for v in EVERYTHING if type(v) in (int, float) and not v]
NOT_SECONDS = [v for v in EVERYTHING if not (v is None or is_positive(v) or any(v is zero for zero in ZERO))]


@pytest.mark.parametrize("value", NOT_UPDATES, ids=name_of)
def test_the_updates_of_advance(value: Any) -> None:
    run = Run(TASK)
    message = refusal(lambda: run.advance(updates=value))
    assert "updates" in message
    assert repr(value) in message
    assert "whole number from 0" in message
    assert run.updates == 0


@pytest.mark.parametrize("value", NOT_SECONDS, ids=name_of)
def test_the_seconds_of_advance(value: Any) -> None:
    run = Run(TASK)
    message = refusal(lambda: run.advance(seconds=value))
    assert "seconds" in message
    assert repr(value) in message
    assert "finite number from 0" in message
    assert run.updates == 0


@pytest.mark.parametrize("amounts", [{}, {"updates": 1, "seconds": 1.0}, {"updates": None, "seconds": None}])
def test_advance_wants_one_amount(amounts: dict[str, Any]) -> None:
    message = refusal(lambda: Run(TASK).advance(**amounts))
    assert "either updates or seconds" in message
    assert f"updates={amounts.get('updates')!r}" in message
    assert f"seconds={amounts.get('seconds')!r}" in message


def test_true_is_no_number_and_one_is_no_flag() -> None:
    """The two that Python would let pass: True == 1."""
    swapped: list[dict[str, Any]] = [{name: True} for name in ("accumulate", "clip", "lr")]
    swapped += [{name: 1} for name in ("zero_grad", "set_to_none", "divide_loss")]
    for fields in swapped:
        refusal(functools.partial(Recipe, **fields))
