"""Whatever is handed in, a refusal names the field, the value and what is allowed, and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from process_state import nothing_left
from torch import Tensor, nn

from gradlab import Recipe, Run, tasks
from gradlab.tasks import Task

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
    value = value.tolist() if isinstance(value, Tensor | np.float32) else value
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
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


@pytest.mark.parametrize("field", ALLOWED)
def test_every_field_of_a_recipe_takes_only_what_it_says(field: str) -> None:
    allowed, phrases = ALLOWED[field]
    for value in EVERYTHING:
        if allowed(value):
            recipe = Recipe(**{field: value})
            assert getattr(recipe, field) == value
            compile(recipe.source(), "<recipe>", "exec")
            continue
        message = refusal(lambda value=value: Recipe(**{field: value}))
        assert field in message
        assert repr(value) in message
        assert all(word in message for word in phrases)
        assert refusal(lambda value=value: Recipe().replace(**{field: value})) == message


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
    assert message.endswith("; did you mean 'zero_grad'?")
    assert refusal(lambda: Recipe(optimiser="sgd")).endswith("; did you mean 'optimizer'?")  # type: ignore[call-arg]


def is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def is_amount(value: Any) -> bool:
    return is_positive(value) or (type(value) in (int, float) and not value)


RUN = Run(TASK)
REFUSED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], bool], list[str]]] = {
    # what is called with the value, which values it takes, and the words with which it refuses all others
    "seed": (lambda v: Run(TASK, seed=v), lambda v: is_count(v) and v < 2**32, ["seed", "0 to 2**32 - 1"]),
    "task": (Run, lambda v: False, ["task", "gradlab.tasks"]),
    "recipe": (lambda v: Run(TASK, v), lambda v: v is None, ["recipe", "gradlab.Recipe"]),
    "switch": (RUN.switch, lambda v: False, ["recipe", "gradlab.Recipe"]),
    "edit": (RUN.edit, lambda v: isinstance(v, str), ["text", "string"]),
    "updates": (
        lambda v: RUN.advance(updates=v),
        lambda v: v is None or is_count(v),
        ["updates", "whole number from 0"],
    ),
    "seconds": (
        lambda v: RUN.advance(seconds=v),
        lambda v: v is None or is_amount(v),
        ["seconds", "finite number from 0"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_run_refuses_what_it_does_not_take_and_goes_on(name: str) -> None:
    call, allowed, phrases = REFUSED[name]
    source, updates = RUN.source, RUN.updates
    more = [tasks.line, SimpleNamespace(name="x", build=print), Recipe, 2**32, 2**63]
    for value in EVERYTHING + (more if name != "updates" else []):
        if not allowed(value):
            message = refusal(lambda value=value: call(value))
            assert repr(value) in message
            assert all(word in message for word in phrases)
    assert (RUN.source, RUN.updates) == (source, updates)
    assert RUN.advance(updates=1) == 1


def frozen(seed: int) -> nn.Module:
    return nn.Linear(2, 1).requires_grad_(False)


def make_task(loss_fn: Callable[[Tensor, Tensor], Any] = nn.functional.mse_loss, **fields: Any) -> Task:
    parts = {"name": "mine", "builder": lambda seed: nn.Linear(2, 1), "batches": TASK.batches} | fields
    return Task(**parts, loss_fn=loss_fn)


def train(task: Task, recipe: Recipe | None = None) -> None:
    run = Run(task, recipe)
    try:
        run.advance(updates=1)
    finally:
        run.close()


UNTRAINABLE: list[tuple[Callable[[], Task], Recipe, str]] = [
    (
        lambda: make_task(lambda output, y: (output.sum(), y)),
        Recipe(),
        "loss_fn must return a tensor with one value, got a value of type tuple",
    ),
    (lambda: make_task(lambda output, y: 1.5), Recipe(), "loss_fn must return .*, got a value of type float"),
    (
        lambda: make_task(lambda output, y: output - y.T.expand(2, 1)),
        Recipe(),
        r"loss_fn must .*, got a tensor of shape \(2, 1\)",
    ),
    (
        lambda: make_task(builder=frozen),
        Recipe(),
        "^Run: mine has no parameter that requires grad, so there is nothing to train$",
    ),
    (lambda: make_task(builder=lambda seed: nn.ReLU()), Recipe(), "^Run: mine has no parameter that requires grad"),
    (
        lambda: make_task(builder=lambda seed: nn.LazyLinear(1)),
        Recipe(),
        "^Run: weight of mine is a lazy parameter, which has no shape before the first forward pass",
    ),
]


@pytest.mark.parametrize(("make", "recipe", "message"), UNTRAINABLE)
def test_what_cannot_be_trained_is_refused(make: Callable[[], Task], recipe: Recipe, message: str) -> None:
    task = make()
    with nothing_left(), pytest.raises((ValueError, TypeError), match=message) as refused:
        train(task, recipe)
    assert len(str(refused.value)) < 300


def test_a_loop_of_ones_own_may_take_a_loss_apart() -> None:
    run = Run(make_task(lambda output, y: {"loss": (output - y).square().sum()}, builder=lambda seed: nn.Linear(2, 1)))
    run.edit(run.source.replace("loss_fn(output, y)", 'loss_fn(output, y)["loss"]'))
    assert run.advance(updates=2) == 2
    run.close()
