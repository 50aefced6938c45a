"""Every exercise: the stub, right answers, each typical wrong one, and whatever else may be handed over."""

from __future__ import annotations

import dataclasses
import json
import runpy
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from sampling import every

from gradlab.course.exercises import Exercise, exercise, exercise_names
from gradlab.course.exercises.stubs import stub_of
from gradlab.course.exercises.text import read_text

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parents[2] / "notebooks"
EACH = pytest.mark.parametrize("name", every(5, exercise_names()))
FUNCTIONS = [name for name in exercise_names() if callable(stub_of(exercise(name).stub))]


def right_answers(it: Exercise) -> tuple[Any, ...]:
    """RIGHT of the file that lies here as the exercise lies in the package: solutions written apart from it."""
    return runpy.run_path(str(HERE / f"nb{it.notebook}" / f"{it.name}.py"))["RIGHT"]


def quickly(it: Exercise) -> Exercise:
    """The same exercise with a short time limit."""
    return dataclasses.replace(it, definition=dataclasses.replace(it.definition, seconds=0.2))


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
    it = exercise(name)
    for answer in right_answers(it):
        for _ in range(3):
            verdict = it.check(answer)
            assert verdict, f"{answer}: {verdict}"


@EACH
def test_typical_wrong_answers_are_known_by_name(name: str) -> None:
    it = exercise(name)
    assert len(it.mistakes) >= 3
    for mistake in it.mistakes:
        for _ in range(2):
            verdict = it.check(mistake.answer)
            assert verdict.state == "not yet"
            assert verdict.mistake == mistake.name, str(verdict)
            assert str(verdict).startswith(f"\u2717 Not yet. {mistake.remark}\n")


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


@pytest.mark.parametrize("name", every(5, FUNCTIONS))
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


@pytest.mark.parametrize("name", FUNCTIONS[::5])  # what stops it is one for all exercises
def test_a_loop_without_an_end_is_stopped(name: str) -> None:
    def stubborn(*args: Any, **kwargs: Any) -> Any:
        while True:
            try:
                time.sleep(0.001)
            except BaseException:
                time.sleep(0.001)
                raise

    verdict = quickly(exercise(name)).check(stubborn)
    assert verdict.state == "not yet"
    assert "did not end" in verdict.remark


@EACH
def test_whatever_is_handed_over_or_returned_is_a_verdict(name: str) -> None:
    numbers = [3, -1.5, float("nan"), True, torch.tensor(2.0), torch.ones(3), torch.ones(2, 2, requires_grad=True)]
    for value in [*numbers, "text", b"bytes", [], [None], {}, {"a": 1}, object(), int]:
        for answer in (value, lambda *args, value=value, **kwargs: value):
            verdict = exercise(name).check(answer)
            assert verdict.state in ("not yet", "not attempted"), value
            assert str(verdict)
    # It gives back what it gets, or takes too few arguments.
    assert exercise(name).check(lambda value=3: value).state in ("not yet", "not attempted")
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
    homes = [exercise(name).notebook for name in exercise_names()]
    assert len(exercise_names()) >= 30
    assert len(set(exercise_names())) == len(exercise_names())
    assert all(homes.count(path.stem) >= 2 for path in NOTEBOOKS.glob("*.ipynb"))
    assert sorted(path.stem for path in HERE.glob("nb*/*.py")) == sorted(exercise_names())


def test_they_come_in_the_order_of_the_series_and_from_easy_to_harder() -> None:
    known = [exercise(name) for name in exercise_names()]
    order = [(it.notebook, ("easy", "medium", "harder").index(it.level)) for it in known]
    assert order == sorted(order)


WORDS = """---
level: easy
minutes: 5
---

# A title

What to write, in
two lines.

```python
def f(x):
    return None  # your answer
```

## Hints

1. A hint
   of two lines.
2. Another.

## Mistakes

- `sum`: `a` is
  a sum.
- `mean`: A mean.

## Solution

```python
def f(x):
    return x
```
"""


def test_the_words_are_read_from_markdown(tmp_path: Path) -> None:
    path = tmp_path / "f.md"
    path.write_text(WORDS, encoding="utf-8")
    text = read_text(path)
    assert (text.title, text.level, text.minutes) == ("A title", "easy", 5)
    assert text.spec == "What to write, in two lines."
    assert text.stub == "def f(x):\n    return None  # your answer\n"
    assert text.hints == ("A hint of two lines.", "Another.")
    assert text.remarks == {"sum": "`a` is a sum.", "mean": "A mean."}
    assert text.solution == "def f(x):\n    return x\n"


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ("level: easy", "level: simple"),
        ("minutes: 5", "minutes: five"),
        ("# A title\n", ""),
        ("## Hints", "## Help"),
        ("1. A hint\n   of two lines.\n2. Another.", "A hint."),
        ("## Mistakes", ""),
        ("## Solution", ""),
        ("- `sum`: `a` is\n  a sum.\n- `mean`: A mean.", "None."),
    ],
)
def test_words_with_a_part_missing_are_refused_by_file(tmp_path: Path, part: str, instead: str) -> None:
    path = tmp_path / "f.md"
    assert part in WORDS
    path.write_text(WORDS.replace(part, instead), encoding="utf-8")
    with pytest.raises(ValueError, match=r"f\.md: "):
        read_text(path)
