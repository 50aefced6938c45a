"""Each code leads to a notebook of the series, and the codes that have a lesson of their own are codes of the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

import gradlab.doctor
from gradlab.doctor import lessons

ROOT = Path(__file__).resolve().parents[2]
RULES = "\n".join(
    path.read_text(encoding="utf-8")
    for path in Path(gradlab.doctor.__file__).parent.rglob("*.py")
    if path.stem != "lessons"
)
CODES = sorted(path.name for path in (ROOT / "tests" / "loops" / "bad").iterdir() if path.is_dir())


@pytest.mark.parametrize("code", CODES)
def test_a_code_leads_to_a_notebook(code: str) -> None:
    assert (ROOT / lessons.lesson(code)).exists()


def test_no_lesson_is_for_a_code_that_there_is_not() -> None:
    told = [code for codes in lessons._LESSONS.values() for code in codes]
    assert len(told) == len(set(told))
    assert [code for code in told if f'"{code}"' not in RULES] == []
