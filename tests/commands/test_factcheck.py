"""``gradlab factcheck``: the experiments of a notebook without Jupyter, and their errors."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradlab.__main__ import main
from gradlab.course.claims import CLAIMS
from gradlab.course.experiments import ClaimFacts


@pytest.fixture(autouse=True)
def _only_the_notebook_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others take seconds, and are tried in tests/course/test_claims.py."""
    monkeypatch.setattr("gradlab.course.experiments.SUBJECTS", ())


SETUP = "from gradlab.course import ClaimLog\nverdicts = ClaimLog('9.9', 'cpu')\nprint('chatter')"


def notebook(folder: Path, *experiments: tuple[str, str], setup: str = SETUP) -> Path:
    cells = [("markdown", "# 12"), ("code", setup), ("markdown", "## Five claims\n\n### A7: Zeros are left")]
    for heading, text in experiments:
        cells += [("markdown", heading), ("code", text)]
    path = folder / "12_fact_check.ipynb"
    data = {"cells": [{"cell_type": kind, "source": [text], "id": str(i)} for i, (kind, text) in enumerate(cells)]}
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_it_runs_the_experiments_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = notebook(
        tmp_path,
        ("### A1: One", "verdicts.record('A1', {'near': True}, {'far': False})"),
        ("### A2: Two", "predict('12/a-bet')"),
        ("## Exercises", "raise SystemError('an exercise is no experiment')"),
    )
    assert main(["factcheck", str(path), "--format", "json"]) == 1  # 51 are missing
    output = capsys.readouterr()
    data = json.loads(output.out)
    assert [(claim["code"], claim["verdict"], claim["beyond"]) for claim in data["claims"]] == [
        ("A1", "holds", {"far": False})
    ]
    assert len(data["missing"]) == len(CLAIMS) - 1
    assert output.err == ""


@pytest.mark.parametrize("form", ["md", "json"])
def test_what_is_printed_is_whole_in_any_code_page(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = notebook(tmp_path, ("### A1: One", "verdicts.record('A1', {'4 \u00d7 8 \u2713': True})"))
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="cp1252"))
    assert main(["factcheck", str(path), "--format", form]) == 1
    sys.stdout.flush()
    assert "4 \u00d7 8 \u2713" in printed.getvalue().decode("utf-8")


def test_an_experiment_that_fails_is_named_and_hides_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook(
        tmp_path,
        ("### A1: One", "torch_has_no_such_name"),
        ("text without a heading", "verdicts.record('A1', {'near': True})"),
        ("### A2: Two", "verdicts.record('A2', {'near': True})"),
    )
    monkeypatch.chdir(tmp_path)
    assert main(["factcheck", "-o", "table.md"]) == 1
    output = capsys.readouterr()
    assert output.out.startswith("table.md: 1 claims: ")
    assert output.err.startswith("A1 could not be tried: NameError: ")
    assert "| A2 | " in (tmp_path / "table.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read as a notebook"),
        ("no JSON", "cannot be read as a notebook"),
        ("[]", "cannot be read as a notebook"),
        ('{"cells": []}', "creates no ClaimLog"),
        ('{"cells": [{"cell_type": "code", "source": "predict(\'ClaimLog()\')"}]}', "creates no ClaimLog"),
    ],
)
def test_what_is_no_notebook_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    path = tmp_path / "12_fact_check.ipynb"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert main(["factcheck", str(path)]) == 2
    assert message in capsys.readouterr().err


def test_the_claims_that_the_notebook_does_not_tell_are_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_both() -> Iterator[ClaimFacts]:
        yield "B2", {"near": True}, {}
        raise SystemError("no such thing")

    monkeypatch.setattr("gradlab.course.experiments.SUBJECTS", (on_both,))
    path = notebook(tmp_path, ("#### A1: One", "verdicts.record('A1', {'near': True})"))
    assert main(["factcheck", str(path), "--format", "json"]) == 1
    output = capsys.readouterr()
    assert [claim["code"] for claim in json.loads(output.out)["claims"]] == ["A1", "B2"]
    assert output.err == "on_both could not be tried: SystemError: no such thing\n"


def test_a_set_up_that_fails_and_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = notebook(tmp_path, setup="ClaimLog('9.9')")
    assert main(["factcheck", str(path)]) == 2
    assert "its set-up code failed: NameError" in capsys.readouterr().err
    good = notebook(tmp_path, ("### A1: One", "verdicts.record('A1', {'near': True})"))
    assert main(["factcheck", str(good), "-o", str(tmp_path / "none" / "table.md")]) == 2
    assert "cannot be written" in capsys.readouterr().err
