"""Every exercise: the stub, right answers, each typical wrong one, and any other object."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from right_answers import RIGHT
from sampling import every

from gradlab.course.exercises import exercise, exercise_texts
from gradlab.course.exercises.checking import Definition, stub_of
from gradlab.course.exercises.mending import Mending
from gradlab.course.exercises.texts import read_exercises

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parents[2] / "notebooks"
TIMES = 3 if os.environ.get("GRADLAB_NIGHTLY") else 1  # each is ten random cases
# The last ones work under a ledger, which takes long: they wait for --all. test_mending.py tries the loops to mend.
SLOW = ("evaluate", "largest_batch")
TO_WRITE = [name for name, it in exercise_texts().items() if not isinstance(it.definition, Mending)]
QUICK_FIRST = sorted(TO_WRITE, key=SLOW.__contains__)
EACH = pytest.mark.parametrize("name", every(9, QUICK_FIRST, 2))


def code_of(notebook: str) -> list[str]:
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("name", exercise_texts())
def test_it_shows_itself_and_its_stub_stands_in_the_notebook(name: str) -> None:
    it = exercise(name)
    shown = it._repr_mimebundle_()
    assert it.title in shown["text/plain"]
    assert shown["text/html"].count("<details") == len(it.hints) > 0
    code = code_of(it.notebook)
    assert any(it.stub.strip() in cell for cell in code)
    assert any(f'exercise("{name}")' in cell for cell in code)
    assert any(".check(" in cell and name in cell for cell in code)
    assert it.check(None).state == "not attempted"


@EACH
def test_right_answers_pass_and_typical_wrong_ones_are_known(name: str) -> None:
    it = exercise(name)
    assert it.check(stub_of(it.stub)).state == "not attempted"
    assert 3 <= len(it.definition.mistakes) <= 4
    assert list(it.definition.mistakes) == list(it.remarks)
    for _ in range(TIMES):
        for answer in (stub_of(it.solution), *RIGHT[name]):
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


def wrong_arguments(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> None: ...


TROUBLE = [(leaves, "SystemExit"), (dives, "RecursionError"), (wrong_arguments, "TypeError")]
VALUES = [3, float("nan"), True, torch.ones(2, 2, requires_grad=True), "text", [None], {"a": 1}, object(), int]


@pytest.mark.slow
@pytest.mark.parametrize("name", TO_WRITE[::4])
def test_whatever_a_function_does_or_returns_is_a_verdict(name: str) -> None:
    """Two of the troubles and three of the values in each exercise; neighbours have others."""
    it, index = exercise(name), TO_WRITE[::4].index(name)
    wanted = callable(stub_of(it.stub))
    for answer, word in (TROUBLE * 2)[index % 3 : index % 3 + 2]:
        verdict = it.check(answer)
        assert verdict.state == "not yet"
        assert (word if wanted else "The answer must be a value, not a function") in verdict.remark
    for value in VALUES[index % 3 :: 3]:
        for answer in (value, lambda *args, value=value, **kwargs: value):
            verdict = it.check(answer)
            assert verdict.state in ("not yet", "not attempted"), value
            assert verdict._repr_mimebundle_()["text/html"]
    # It gives back what it gets, or takes too few arguments.
    assert it.check(lambda value=3: value).state in ("not yet", "not attempted")


@pytest.mark.slow
def test_a_ball_that_stops_is_told_its_optimizer() -> None:
    plain, friction = (exercise("stopped").check(answer) for answer in RIGHT["stopped"])
    assert "plain SGD" in plain.remark
    assert "`momentum=0.9`" in friction.remark
    assert plain.picture != friction.picture


def test_a_name_that_is_none() -> None:
    with pytest.raises(ValueError, match=r"such as decay_groups, got 'decay_group'"):
        exercise("decay_group")
    with pytest.raises(TypeError, match="name must be a string"):
        exercise(3)  # type: ignore[arg-type]


def test_every_check_has_its_words() -> None:
    homes = {name: it.notebook for name, it in exercise_texts().items()}
    for notebook in set(homes.values()):
        checks = vars(importlib.import_module(f"gradlab.course.exercises.nb{notebook[:2]}"))
        definitions = {name for name, value in checks.items() if isinstance(value, (Definition, Mending))}
        assert definitions == {name for name, home in homes.items() if home == notebook}


def test_every_notebook_has_some_from_easy_to_harder() -> None:
    assert list(RIGHT) == TO_WRITE
    levels = ("easy", "medium", "harder")
    homes = {name: it.notebook for name, it in exercise_texts().items()}
    order = [(text.notebook, levels.index(text.level)) for text in exercise_texts().values()]
    assert order == sorted(order)
    assert set(homes.values()) == {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    for notebook in homes.values():
        names = [name for name, home in homes.items() if home == notebook]
        assert len(names) >= 2


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
    texts = read_exercises(path)
    assert list(texts) == ["f", "g"]
    text = texts["f"]
    assert (text.notebook, text.title, text.level, text.minutes) == ("00_a_notebook", "A title", "easy", 5)
    assert text.spec == "What to write, in two lines."
    assert text.stub == "def f(x):\n    return None  # your answer\n"
    assert text.hints == ("A hint of two lines.", "Another.")
    assert text.remarks == {"sum": "`a` is a sum.", "mean": "A mean."}
    assert text.solution == "def f(x):\n    return x\n"


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ("(easy,", "(simple,"),
        ("What to write, in\ntwo lines.\n\n", ""),
        ("```python\ndef f(x):\n    return None", "return None"),
        ("### Hints", "### Help"),
        ("### Solution", ""),
        ("return x\n```\n", "return x\n```\n\nMore.\n"),
    ],
)
def test_words_with_a_part_missing_are_refused(tmp_path: Path, part: str, instead: str) -> None:
    path = tmp_path / "nb00.md"
    assert part in WORDS
    path.write_text(WORDS.replace(part, instead), encoding="utf-8")
    with pytest.raises(ValueError, match=r"an exercise must have .*, got other parts in '## `f`"):
        read_exercises(path)
