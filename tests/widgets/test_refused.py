"""Errors of a Lab, a ForecastLab, a recording and compare: each names the field, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from process_state import nothing_left
from torch import Tensor, nn

from gradlab import Lab, Recipe, compare
from gradlab.tasks import Task
from gradlab.widgets import ForecastLab


def compare_with(**wrong: Any) -> object:
    return compare(**{"task": "line", "recipes": {"a": Recipe(lr=0.01)}, "updates": 3, **wrong})


def record(**wrong: Any) -> Any:
    return Lab("bowl").record(**wrong)


class Broken(nn.Linear):
    """A model whose forward raises."""

    def forward(self, x: Tensor) -> Tensor:
        """Raise."""
        raise ZeroDivisionError("broken")


def broken(seed: int) -> nn.Module:
    return Broken(2, 1)


BROKEN = Task("broken", broken, [(torch.zeros(1, 2), torch.zeros(1, 1))], nn.functional.mse_loss)

BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: Lab(3), r"task must be a Task or one of .*got 3"),
    (lambda: Lab("line", recipe="fast"), r"recipe must be a gradlab.Recipe, got 'fast'"),
    (lambda: Lab("line", controls="zero_grad"), r"controls must be a list of names .*got 'zero_grad'"),
    (lambda: Lab("line", speed="fast"), r"speed must be one of statements, 1 update/s, .*got 'fast'"),
    (lambda: Lab("line", play=1), r"play must be True or False, got 1"),
    (lambda: Lab("line", panels=[]), r"panels must .*got \[\]"),
    (lambda: Lab("line", panels=["picture"]), r"panels .*line.*picture"),
    (lambda: Lab("line").run_statements(-1), r"statements must be a whole number from 0, got -1"),
    (lambda: Lab("line").reset(weights=[1.0, float("nan")]), r"weights must be 2 finite numbers"),
    (lambda: Lab("line").switch(lr=-1), r"lr must be a finite number above 0, got -1"),
    (lambda: Lab("line").switch(learning_rate=1), r"must be one of .*'lr', got 'learning_rate'"),
    (lambda: ForecastLab("llama-9b"), r"must be one of 'gpt2', .*got 'llama-9b'"),
    (lambda: ForecastLab(batch=0), r"batch must be a whole number from 1 to .*got 0"),
    (lambda: ForecastLab(context=1.5), r"context must be a whole number.*got 1.5"),  # type: ignore[arg-type]
    (lambda: ForecastLab(checkpoint="yes"), r"checkpoint must be True or False, got 'yes'"),  # type: ignore[arg-type]
    (lambda: ForecastLab(recipe="fast"), r"recipe must be a gradlab.Recipe, got 'fast'"),  # type: ignore[arg-type]
    (lambda: ForecastLab(card="RTX"), r"card must be one of T4, .*got 'RTX'"),
    (lambda: ForecastLab().run(optimiser="sgd"), r"must be one of .*got 'optimiser'"),
    (lambda: ForecastLab().save("x.gif"), r"path must end in .png or .svg, got 'x.gif'"),
    (lambda: record(updates=0), "updates must be a whole number, 1 to 1,000, got 0"),
    (lambda: record(updates=10, switches="zero_grad"), "switches must be a list of names"),
    (lambda: record(updates=10, switches=["lr"]), "must give lr its values"),
    (lambda: record(updates=10, switches={"lr": [-1]}), "lr must be a finite number above 0, got -1"),
    (lambda: record(updates=10, switches=["zero_grad"], marks=[10]), "marks must be whole numbers, 0 to 9"),
    (lambda: record(updates=200, switches=["zero_grad"], marks=range(1, 100)), "at most 64 runs"),
    (lambda: record(updates=2).save("x.pdf"), r"must end in \.html, got"),
    (lambda: compare_with(task=5), r"task must be a Task or one of .*got 5"),
    (lambda: compare_with(recipes={f"{i}": Recipe() for i in range(9)}), r"recipes must contain 1 to 7 Recipes, got 9"),
    (lambda: compare_with(recipes={"a": "sgd"}), r"recipes\['a'\] must be a gradlab.Recipe, got 'sgd'"),
    (lambda: compare_with(recipes={1: Recipe()}), r"labels of recipes must be strings that are not blank, got 1"),
    (lambda: compare_with(updates=0), r"updates must be a whole number from 1, got 0"),
    (lambda: Lab("digit"), r"^Lab: task must be a Task or one of .*got 'digit'; did you mean 'digits'\?$"),
    (lambda: Lab("line", controls=["zerograd"]), r"; did you mean 'zero_grad'\?$"),
    (lambda: Lab("line", panels=["los"]), r"^Lab: panels .*; did you mean 'loss'\?$"),
    (lambda: Lab("line").run(np.int64(-1)), r"^Lab.run: updates must be a whole number from 0, got .*-1"),  # type: ignore[arg-type]
    (lambda: record(marks=5), r"^Lab.record: marks must be a list of whole numbers, 0 to 149, got 5$"),
    (lambda: record(switches=["zerograd"]), r"got 'zerograd'; did you mean 'zero_grad'\?$"),
    (
        lambda: compare_with(task=BROKEN, recipes={"fast one": Recipe()}),
        r"^compare: 'fast one': line \d: ZeroDivisionError: broken",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with nothing_left(), pytest.raises((ValueError, TypeError), match=message):
        call()


def test_whole_numbers_of_numpy_are_taken() -> None:
    two: Any = np.int64(2)
    assert Lab("line").run(two).run_statements(two).runner.updates == 2
    with pytest.warns(DeprecationWarning, match="run_statements"):
        assert Lab("line").step(two).runner.line > 1
    assert compare_with(updates=two).updates == 2  # type: ignore[attr-defined]
    assert record(updates=two, switches=["zero_grad"], marks=np.arange(2), turns=np.int64(1)).marks == [0, 1]


@pytest.mark.parametrize("message", [None, 5, "hello", [], ["do"]])
def test_a_message_of_another_kind_is_answered_in_words(message: Any) -> None:
    lab = Lab("line")
    with nothing_left():
        reply = lab.handle(message)
    assert reply["frames"]
    assert "do must be one of hello, frames, " in str(reply["frames"][-1])
    assert lab.runner.updates == 0
