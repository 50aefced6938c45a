"""Every switch changes the text and the run, and what cannot be is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from gradlab import Recipe, tasks

from .driving import Notebook

LAB = "from gradlab import Lab, Recipe\nlab = Lab({})\nlab"
WINDOW = {"accumulate": 4}


@pytest.mark.parametrize(
    ("before", "label", "value", "after"),
    [
        ({}, "zero_grad", False, {"zero_grad": False}),
        ({"zero_grad": False}, "zero_grad", True, {}),
        ({}, "set_to_none", False, {"set_to_none": False}),
        ({}, "accumulate", 4, WINDOW),
        (WINDOW, "divide_loss", False, {**WINDOW, "divide_loss": False}),
        ({}, "AMP", "bf16", {"amp": "bf16"}),
        ({}, "AMP", "fp16", {"amp": "fp16"}),
        ({"amp": "fp16"}, "AMP", "off", {}),
        ({}, "clip", "0.5", {"clip": 0.5}),
        ({"clip": 0.3}, "clip", "off", {}),
        ({}, "optimizer", "adamw", {"optimizer": "adamw"}),
        ({}, "lr", 0.025, {"lr": 0.025}),
    ],
)
def test_switch_changes_text_and_run(
    lab_page: Callable[..., Notebook], before: dict[str, Any], label: str, value: Any, after: dict[str, Any]
) -> None:
    old, new = Recipe(**{"lr": 0.1, **before}), Recipe(**{"lr": 0.1, **after})
    page = lab_page(LAB.format(f"'spiral', {old!r}"))
    assert page.code() == old.source()
    assert shown(page) == as_shown(old)
    page.button("1 update").click()
    page.wait_for_words("update 1 ")
    page.turn(label, value)
    page.wait_for_code(new.source())
    marked = page.lines("changed")
    page.button("1 update").click()
    page.wait_for_words("update 2 · loss [0-9.]+ ")

    assert shown(page) == as_shown(new)
    check_marks(old.source().splitlines(), new.source().splitlines(), marked)
    assert page.ask("[lab.runner.recipe.source(), lab.runner.source]") == [new.source()] * 2
    assert page.ask("[mark[0] for mark in lab.runner.record.switches]") == [1], "the loss panel marks the moment"


def check_marks(old: list[str], new: list[str], marked: list[int]) -> None:
    """Every line that is new is marked, and the lines without a mark are lines of the old text, in their old order."""
    assert {number for number, line in enumerate(new, 1) if line not in old} <= set(marked)
    rest = iter(old)
    assert all(line in rest for number, line in enumerate(new, 1) if number not in marked)
    assert len(marked) < len(new)


def shown(page: Notebook) -> dict[str, Any]:
    """Read the controls as a learner does."""
    checks = {name: page.control(name).is_checked() for name in ("zero_grad", "set_to_none", "divide_loss")}
    numbers = {name: float(page.control(name).input_value()) for name in ("accumulate", "lr")}
    chosen = "select => select.selectedIndex < 0 ? null : select.options[select.selectedIndex].text"
    choices = {name: page.control(name).evaluate(chosen) for name in ("AMP", "clip", "optimizer")}
    return {**checks, **numbers, **choices}


def as_shown(recipe: Recipe) -> dict[str, Any]:
    checks = {name: getattr(recipe, name) for name in ("zero_grad", "set_to_none", "divide_loss")}
    clip = "off" if recipe.clip is None else f"{recipe.clip:g}"
    choices = {"AMP": recipe.amp, "clip": clip, "optimizer": recipe.optimizer}
    return {**checks, "accumulate": recipe.accumulate, "lr": recipe.lr, **choices}


def test_what_has_no_effect_cannot_be_turned(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("'line'"))
    assert page.control("divide_loss").is_disabled()
    assert page.control("set_to_none").is_enabled()
    page.turn("accumulate", 2)
    page.wait_for("lab => !lab.querySelector('input[type=checkbox]:disabled')")
    page.turn("zero_grad", False)
    page.wait_for("lab => lab.querySelector('input[type=checkbox]:disabled')")
    assert page.control("set_to_none").is_disabled()


@pytest.mark.parametrize("name", tasks.names())
def test_task_is_a_new_run(lab_page: Callable[..., Notebook], name: str) -> None:
    first = "bowl" if name != "bowl" else "line"
    page = lab_page(LAB.format(f"'{first}', Recipe(zero_grad=False, lr=0.01)"))
    page.button("1 update").click()
    page.wait_for_words("update 1 ")
    before = page.pictures()
    page.turn("task", name)
    task = getattr(tasks, name)()
    page.wait_for_words("A new run")
    assert page.updates() == 0
    assert task.title in page.words()
    assert page.code() == Recipe(zero_grad=False, lr=task.lr).source()
    assert page.pictures()[0] != before[0], "the loss curve of the old run is gone"
    page.button("1 update").click()
    page.wait_for_words("update 1 ")
    assert page.ask("lab.runner.task.name") == name


@pytest.mark.parametrize(
    ("label", "typed"),
    [
        *(("lr", typed) for typed in ("-1", "0", "1e400", "", "abc", "1_0")),
        *(("accumulate", typed) for typed in ("2.5", "1e400", "", "abc", "-1", "0", "99")),
    ],
)
def test_a_number_typed_badly_is_answered_in_words(lab_page: Callable[..., Notebook], label: str, typed: str) -> None:
    page = lab_page(LAB.format("'bowl', Recipe(accumulate=3, lr=0.2)"))
    page.button("1 update").click()
    page.wait_for_words("update 1 ")
    code, weights = page.code(), page.ask("[p.tolist() for p in lab.runner.model.parameters()]")
    page.control(label).fill(typed)
    page.control(label).press("Tab")
    stays = {"lr": "0.2", "accumulate": "3"}[label]
    allowed = {"lr": "a finite number above 0", "accumulate": "(a whole number, )?1 to 16"}[label]
    page.wait_for_words(f"{label} must be {allowed}, got '{typed}'. It stays at {stays}.")
    expect(page.control(label)).to_have_value(stays)
    assert page.code() == code
    assert page.ask("[p.tolist() for p in lab.runner.model.parameters()]") == weights
    assert page.ask("lab.runner.recipe.lr, lab.runner.recipe.accumulate") == (0.2, 3)
