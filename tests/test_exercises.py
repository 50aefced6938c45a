"""Every exercise, walked: the stub, right answers, each typical wrong one, and whatever else may be handed over."""

from __future__ import annotations

import importlib.util
import json
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from gradlab.exercises import Exercise, exercise, names
from gradlab.exercises.stubs import stub_of

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parent / "notebooks"
EACH = pytest.mark.parametrize("name", names())
FUNCTIONS = [name for name in names() if callable(stub_of(exercise(name).stub))]


def answers(name: str) -> ModuleType:
    """The answers under tests/exercises: RIGHT, a tuple, and WRONG, by the mistake's name."""
    path = HERE / "exercises" / f"{name}.py"
    assert path.exists(), f"{name} has no reference solution"
    spec = importlib.util.spec_from_file_location(f"answers_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cells(notebook: str, kind: str) -> list[str]:
    stored = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in stored if cell["cell_type"] == kind]


@EACH
def test_the_stub_is_not_attempted_and_stands_in_the_notebook(name: str) -> None:
    it = exercise(name)
    assert it.check(stub_of(it.stub)).state == "not attempted"
    assert it.check(None).state == "not attempted"
    code = cells(it.notebook, "code")
    assert any(f'exercise("{name}")' in cell for cell in code)
    assert any(it.stub.strip() in cell and ".check(" in cell for cell in code)


@EACH
def test_right_answers_pass_every_time(name: str) -> None:
    for answer in answers(name).RIGHT:
        for _ in range(3):
            verdict = exercise(name).check(answer)
            assert verdict, f"{answer}: {verdict}"


@EACH
def test_typical_wrong_answers_are_known_by_name(name: str) -> None:
    it, wrong = exercise(name), answers(name).WRONG
    assert len(it.mistakes) >= 3
    assert set(wrong) == {mistake.name for mistake in it.mistakes}
    for mistake in it.mistakes:
        for _ in range(2):
            verdict = it.check(wrong[mistake.name])
            assert verdict.state == "not yet"
            assert verdict.mistake == mistake.name, str(verdict)
            assert mistake.remark in str(verdict)


@EACH
def test_nothing_about_it_is_empty(name: str) -> None:
    it = exercise(name)
    assert (it.level, it.minutes > 0) in [(level, True) for level in ("easy", "medium", "harder")]
    assert it.hints
    assert all(text.strip() for text in (it.title, it.spec, *it.hints, *(mistake.remark for mistake in it.mistakes)))
    assert len({mistake.remark for mistake in it.mistakes}) == len(it.mistakes)
    shown = it._repr_mimebundle_()
    assert it.title in shown["text/plain"]
    assert shown["text/html"].count("<details") == len(it.hints)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_whatever_a_function_does_ends_in_a_verdict(name: str) -> None:
    def raises(*args: Any, **kwargs: Any) -> Any:
        return 1 / 0

    def leaves(*args: Any, **kwargs: Any) -> Any:
        raise SystemExit

    def dives(*args: Any, **kwargs: Any) -> Any:
        return dives(*args, **kwargs)

    def wrong_arguments(one: Any, two: Any, three: Any, four: Any, five: Any, six: Any, seven: Any) -> None: ...

    for answer, word in (
        (raises, "ZeroDivisionError"),
        (leaves, "SystemExit"),
        (dives, "RecursionError"),
        (wrong_arguments, "TypeError"),
    ):
        verdict = exercise(name).check(answer)
        assert verdict.state == "not yet"
        assert word in verdict.remark
        assert verdict._repr_mimebundle_()["text/plain"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_loop_without_an_end_is_stopped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stubborn(*args: Any, **kwargs: Any) -> Any:
        while True:
            try:
                time.sleep(0.001)
            except BaseException:
                time.sleep(0.001)
                raise

    monkeypatch.setattr(Exercise, "seconds", 0.2)
    it = exercise(name)
    monkeypatch.setattr(type(it), "seconds", 0.2)
    verdict = it.check(stubborn)
    assert verdict.state == "not yet"
    assert "did not end" in verdict.remark


@EACH
def test_whatever_is_handed_over_or_returned_is_a_verdict(name: str) -> None:
    numbers = [3, -1.5, float("nan"), True, torch.tensor(2.0), torch.ones(3), torch.ones(2, 2, requires_grad=True)]
    for value in [*numbers, "text", b"bytes", [], [None], {}, {"a": 1}, object(), int]:
        for answer in (value, lambda *args, value=value, **kwargs: value, lambda value=value: value):
            verdict = exercise(name).check(answer)
            assert verdict.state in ("not yet", "not attempted"), value
            assert str(verdict)
    assert exercise(name).check(lambda *args, **kwargs: torch.ones(3))._repr_mimebundle_()["text/html"]


def test_what_a_check_leaves_behind() -> None:
    def rude(lr: float, loss_period: float) -> float:
        torch.set_grad_enabled(False)
        return torch.rand(()).item()

    torch.manual_seed(7)
    before = torch.get_rng_state()
    assert not exercise("curvature_from").check(rude)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.is_grad_enabled()


def test_a_name_that_is_none() -> None:
    with pytest.raises(ValueError, match=r"'curvature_form'; there is curvature_from"):
        exercise("curvature_form")
    with pytest.raises(TypeError, match="name must be a text"):
        exercise(3)  # type: ignore[arg-type]


def test_there_are_enough() -> None:
    homes = [exercise(name).notebook for name in names()]
    assert len(names()) >= 30
    assert len(set(names())) == len(names())
    assert all(homes.count(path.stem) >= 2 for path in NOTEBOOKS.glob("*.ipynb"))
    assert {f"{path.stem}" for path in (HERE / "exercises").glob("*.py")} == set(names())
