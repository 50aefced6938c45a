"""Every exercise: the stub, right answers, each typical wrong one, and whatever else may be handed over."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from sampling import every

from gradlab.course import exercises
from gradlab.course.exercises import Exercise, exercise, exercise_names, exercise_notebooks, exercise_texts
from gradlab.course.exercises.base import read_texts
from gradlab.course.exercises.checking import stub_of
from gradlab.course.exercises.definition import Definition

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parents[2] / "notebooks"
TIMES = 3 if os.environ.get("GRADLAB_NIGHTLY") else 1  # each is ten random cases
# The last ones work under a ledger or the doctor, which takes long: they wait for --all.
SLOW = ("evaluate", "largest_batch", "mended_head")
QUICK_FIRST = sorted(exercise_names(), key=SLOW.__contains__)
EACH = pytest.mark.parametrize("name", every(5, QUICK_FIRST))


@cache
def further_answers(notebook: str) -> dict[str, list[Any]]:
    """RIGHT of the file that lies here as the notebook's exercises lie in the package."""
    return runpy.run_path(str(HERE / f"nb{notebook[:2]}.py"))["RIGHT"]


def right_answers(it: Exercise) -> list[Any]:
    """The solution that teachers read, and others that share no code with the exercise."""
    return [stub_of(it.solution), *further_answers(it.notebook)[it.name]]


def code_of(notebook: str) -> list[str]:
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@EACH
def test_it_shows_itself_and_its_stub_stands_in_the_notebook_not_attempted(name: str) -> None:
    it = exercise(name)
    shown = it._repr_mimebundle_()
    assert it.title in shown["text/plain"]
    assert shown["text/html"].count("<details") == len(it.hints) > 0
    assert it.check(stub_of(it.stub)).state == it.check(None).state == "not attempted"
    code = code_of(it.notebook)
    assert any(f'exercise("{name}")' in cell for cell in code)
    assert any(it.stub.strip() in cell and ".check(" in cell for cell in code)


@EACH
def test_right_answers_pass_and_typical_wrong_ones_are_known_by_name(name: str) -> None:
    it = exercise(name)
    assert len(it.definition.mistakes) >= 3
    for _ in range(TIMES):
        for answer in right_answers(it):
            verdict = it.check(answer)
            assert verdict, f"{answer}: {verdict}"
        for mistake, wrong in it.definition.mistakes.items():
            verdict = it.check(wrong)
            assert (verdict.state, verdict.mistake) == ("not yet", mistake), str(verdict)
            assert str(verdict).startswith(f"\u2717 Not yet. {it.remarks[mistake]}\n")


def leaves(*args: Any, **kwargs: Any) -> Any:
    raise SystemExit


def dives(*args: Any, **kwargs: Any) -> Any:
    return dives(*args, **kwargs)


def wrong_arguments(one: Any, two: Any, three: Any, four: Any, five: Any, six: Any, seven: Any) -> None: ...


TROUBLE = [(leaves, "SystemExit"), (dives, "RecursionError"), (wrong_arguments, "TypeError")]
VALUES = [3, float("nan"), True, torch.ones(2, 2, requires_grad=True), "text", [None], {"a": 1}, object(), int]


@EACH
def test_whatever_a_function_does_or_returns_is_a_verdict(name: str) -> None:
    """Two of the troubles and three of the values in each exercise; neighbours have others."""
    it, at = exercise(name), QUICK_FIRST.index(name)
    wanted = callable(stub_of(it.stub))
    for answer, word in (TROUBLE * 2)[at % 3 : at % 3 + 2]:
        verdict = it.check(answer)
        assert verdict.state == "not yet"
        assert (word if wanted else "A value is wanted, not a function") in verdict.remark
    for value in VALUES[at % 3 :: 3]:
        for answer in (value, lambda *args, value=value, **kwargs: value):
            verdict = it.check(answer)
            assert verdict.state in ("not yet", "not attempted"), value
            assert verdict._repr_mimebundle_()["text/html"]
    # It gives back what it gets, or takes too few arguments.
    assert it.check(lambda value=3: value).state in ("not yet", "not attempted")


def test_a_name_that_is_none() -> None:
    with pytest.raises(ValueError, match=r"'curvature_form'; there is curvature_from"):
        exercise("curvature_form")
    with pytest.raises(TypeError, match="name must be a text"):
        exercise(3)  # type: ignore[arg-type]


def test_words_and_checks_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    text = exercise_texts()["period_of"]
    amiss = {"unchecked": text, "period_of": dataclasses.replace(text, remarks={"valleys": "That is half of it."})}
    monkeypatch.setattr(exercises, "exercise_texts", lambda: amiss)
    with pytest.raises(ValueError, match=r"no `unchecked = Definition\(...\)` in .*nb03.py"):
        exercise("unchecked")
    with pytest.raises(ValueError, match=r"the same, in one order: \['weight-period', .* in the .py, \['valleys'\]"):
        exercise("period_of")


@pytest.mark.parametrize("notebook", sorted(set(exercise_notebooks().values())))
def test_every_check_has_its_words(notebook: str) -> None:
    checks = vars(importlib.import_module(f"gradlab.course.exercises.nb{notebook[:2]}"))
    found = {name for name, value in checks.items() if isinstance(value, Definition)}
    assert found == {name for name, home in exercise_notebooks().items() if home == notebook}


def test_every_notebook_has_some_from_easy_to_harder() -> None:
    homes, levels = exercise_notebooks(), ("easy", "medium", "harder")
    order = [(text.notebook, levels.index(text.level)) for text in exercise_texts().values()]
    assert order == sorted(order)
    assert set(homes.values()) == {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    for notebook in homes.values():
        names = [name for name, home in homes.items() if home == notebook]
        assert len(names) >= 2
        assert list(further_answers(notebook)) == names


WORDS = """# 00_a_notebook

## `f`: A title (easy, 5 minutes)

What to write, in
two lines.

```python
def f(x):
    return None  # your answer
```

### Hints

1. A hint
   of two lines.
2. Another.

### Mistakes

- `sum`: `a` is
  a sum.
- `mean`: A mean.

### Solution

```python
def f(x):
    return x
```
"""


def test_the_words_are_read_from_markdown(tmp_path: Path) -> None:
    path = tmp_path / "nb00.md"
    path.write_text(WORDS + WORDS[WORDS.index("\n## ") :].replace("`f`", "`g`"), encoding="utf-8")
    texts = read_texts(path)
    assert list(texts) == ["f", "g"]
    assert texts["f"] == texts["g"]
    text = texts["f"]
    assert (text.notebook, text.title, text.level, text.minutes) == ("00_a_notebook", "A title", "easy", 5)
    assert text.spec == "What to write, in two lines."
    assert text.stub == "def f(x):\n    return None  # your answer\n"
    assert text.hints == ("A hint of two lines.", "Another.")
    assert text.remarks == {"sum": "`a` is a sum.", "mean": "A mean."}
    assert text.solution == "def f(x):\n    return x\n"


@pytest.mark.parametrize(
    ("part", "instead", "said"),
    [
        ("# 00_a_notebook", "", "nb00.md: it begins with the notebook's name"),
        ("(easy,", "(simple,", "nb00.md: here should be a heading such as"),
        ("5 minutes", "five minutes", "nb00.md: here should be a heading such as"),
        ("What to write, in\ntwo lines.\n\n", "", "exercise `f`: here should be a paragraph .*, not '```python'"),
        ("```python\ndef f(x):\n    return None", "return None", "exercise `f`: here should be the stub"),
        ("### Hints", "### Help", "exercise `f`: here should be ### Hints.*, not '### Help'"),
        ("1. A hint\n   of two lines.\n2. Another.", "A hint.", "here should be ### Hints, written 1"),
        ("### Mistakes", "", "exercise `f`: here should be ### Mistakes"),
        ("- `sum`: `a` is\n  a sum.\n- `mean`: A mean.", "None.", "here should be ### Mistakes, written - `name`"),
        ("### Solution", "", "exercise `f`: here should be ### Solution"),
        ("return x\n```\n", "return x\n```\n\nMore.\n", "exercise `f`: here should be the next exercise, not 'More.'"),
        ("return x\n```\n", "return x\n```\n" + WORDS[WORDS.index("\n## ") :], "there are two exercises `f`"),
    ],
)
def test_words_with_a_part_missing_are_refused_by_file(tmp_path: Path, part: str, instead: str, said: str) -> None:
    path = tmp_path / "nb00.md"
    assert part in WORDS
    path.write_text(WORDS.replace(part, instead), encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        read_texts(path)
