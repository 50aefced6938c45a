"""The doctor beside other tools: runnable programs, findings that count, and formats of its report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from test_doctor_script import CLEAN, FINDINGS, FORGETFUL, FORGETS, HEALTHY, NOT_RUN, doctor

import gradlab
from gradlab.doctor.reports import FORMATS, read_settings

pytestmark = pytest.mark.slow


def test_what_a_child_prints_does_not_spoil_the_report(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "train.py").write_text(FORGETFUL + "import os\nos.system('echo child')\nprint('parent')")
    code, out, err = doctor(capfd, "--json", "train.py")
    assert [finding["code"] for finding in json.loads(out)["findings"]] == [FORGETS]
    assert {"child", "parent"} <= set(err.split())
    assert code == FINDINGS


def test_a_module_of_a_package(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch) -> None:
    (folder / "pack").mkdir()
    (folder / "pack" / "__init__.py").write_text("")
    (folder / "pack" / "size.py").write_text("SIZE = 2")
    (folder / "pack" / "train.py").write_text("from .size import SIZE\nimport sys\nprint(sys.argv[1:])" + FORGETFUL)
    (folder / "pack" / "__main__.py").write_text("from . import train")
    monkeypatch.syspath_prepend(folder)
    code, out, _ = doctor(capfd, "-m", "pack.train", "--lr", "1")
    assert code == FINDINGS
    assert "['--lr', '1']" in out
    assert "missing-zero-grad  at pack/train.py:10" in out
    for name in [name for name in sys.modules if name.startswith("pack")]:
        del sys.modules[name]
    assert doctor(capfd, "-m", "pack")[0] == FINDINGS  # python -m pack runs pack/__main__.py


def notebook(path: Path, *cells: str) -> str:
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    document.cells.insert(1, nbformat.v4.new_markdown_cell("Text is no cell that runs."))
    nbformat.write(document, path)
    return path.name


def test_a_notebook_is_told_by_cell_and_line(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    head, _, loop = FORGETFUL.partition("for _")
    name = notebook(folder / "lesson.ipynb", "%matplotlib inline", head, f"# the loop\n\nfor _{loop}", "!echo shell")
    code, out, err = doctor(capfd, name)
    assert (code, err) == (FINDINGS, "")
    assert "missing-zero-grad  at lesson.ipynb, cell 3:5" in out
    assert "shell" in out


def test_a_notebook_ends_at_its_first_error(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    name = notebook(folder / "lesson.ipynb", "1 / 0", "print('never')")
    code, out, _ = doctor(capfd, name)
    assert code == NOT_RUN
    assert out.count("ZeroDivisionError: ") == 1
    assert "never" not in out
    (folder / "bad.ipynb").write_text("{}")
    code, _, err = doctor(capfd, "bad.ipynb")
    assert code == NOT_RUN
    assert "bad.ipynb" in err


@pytest.mark.parametrize(
    ("options", "expected", "shown"),
    [
        ("--ignore missing-zero-grad", CLEAN, False),
        ("--ignore clip-without-effect", FINDINGS, True),
        ("--select clip-without-effect,never-steps", CLEAN, False),
        ("--select missing-zero-grad", FINDINGS, True),
        ("--exit-zero", CLEAN, True),
        ("--fail-on error", FINDINGS, True),
    ],
)
def test_which_findings_count(options: str, expected: int, shown: bool, folder: Path, capfd) -> None:
    (folder / "train.py").write_text(FORGETFUL)
    code, out, err = doctor(capfd, *options.split(), "train.py")
    assert (code, err) == (expected, "")
    assert (FORGETS in out) is shown


def test_a_comment_at_the_line_ignores_a_code(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for comment, expected in (
        ("# gradlab: ignore[missing-zero-grad] shown on purpose", CLEAN),
        ("# gradlab: ignore[never-steps, missing-zero-grad]", CLEAN),
        ("# gradlab: ignore[never-steps]", FINDINGS),
        ("# ignore[missing-zero-grad]", FINDINGS),
    ):
        (folder / "train.py").write_text(FORGETFUL.replace("optimizer.step()", f"optimizer.step()  {comment}"))
        assert doctor(capfd, "train.py")[0] == expected, comment


def test_what_comments_ignore_is_counted_in_every_form(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ignoring = f"optimizer.step()  # gradlab: ignore[{FORGETS}]"
    (folder / "train.py").write_text(FORGETFUL.replace("optimizer.step()", ignoring))
    outputs = {form: doctor(capfd, "--format", form, "train.py")[1] for form in FORMATS}
    assert outputs["text"].startswith("\nNo findings, 1 ignored by comment. Watched 6 backward passes")
    assert outputs["github"].startswith("::notice::No findings, 1 ignored by comment. Watched")
    assert json.loads(outputs["json"])["ignored"] == 1
    assert json.loads(doctor(capfd, "--json", "--ignore", FORGETS, "train.py")[1])["ignored"] == 0  # by an option


def test_settings_of_the_nearest_pyproject(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "train.py").write_text(FORGETFUL)
    (folder / "pyproject.toml").write_text('[tool.gradlab.doctor]\nignore = ["missing-zero-grad"]\nfail-on = "hint"\n')
    (folder / "inner").mkdir()
    assert read_settings(folder / "inner" / "x.py") == {"ignore": (FORGETS,), "fail_on": "hint"}
    assert doctor(capfd, "train.py")[0] == CLEAN
    assert doctor(capfd, "--ignore", "", "train.py")[0] == FINDINGS  # an option wins


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('ignored = ["x"]', "unknown key 'ignored'"),
        ('ignore = "missing-zero-grad"', "must be a list of codes"),
        ('select = ["missing-zero"]', "did you mean 'missing-zero-grad'?"),
        ('fail-on = "fatal"', "error, warning, hint"),
        ("ignore = [", "pyproject.toml"),
    ],
)
def test_bad_settings_are_told_in_one_line(table: str, message: str, folder: Path, capfd) -> None:
    (folder / "train.py").write_text(HEALTHY)
    (folder / "pyproject.toml").write_text(f"[tool.gradlab.doctor]\n{table}\n")
    code, out, err = doctor(capfd, "train.py")
    assert (code, out) == (NOT_RUN, "")
    assert message in err
    assert len(err.splitlines()) == 1


# A pipe whose reader has gone, as after | head.

BYE = "\nimport atexit\natexit.register(print, 'bye')" + FORGETFUL


def piped(script: str) -> subprocess.CompletedProcess[str]:
    """Run the doctor in a pipe of bash; the exit code is that of the first program."""
    home = str(Path(gradlab.__file__).parents[1])
    return subprocess.run(
        ["bash", "-c", f"{sys.executable} -m gradlab doctor {script}; exit ${{PIPESTATUS[0]}}"],
        env={**os.environ, "PYTHONPATH": home},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.nightly
def test_a_pipe_whose_reader_has_gone_ends_quietly(folder: Path) -> None:
    (folder / "train.py").write_text(f"import time\ntime.sleep(0.5)\n{BYE}")  # by then the reader has gone
    done = piped("--json train.py | true")
    assert (done.returncode, done.stdout, done.stderr) == (FINDINGS, "", "")


def test_a_program_whose_reader_goes_is_ended_and_judged(folder: Path) -> None:
    (folder / "train.py").write_text(FORGETFUL + "while True:\n    print('x' * 10_000)")
    done = piped("train.py | head -n 1")
    assert (done.returncode, done.stdout, done.stderr) == (FINDINGS, "x" * 10_000 + "\n", "")


def test_annotations_of_github(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "train.py").write_text(FORGETFUL)
    _, out, _ = doctor(capfd, "--format", "github", "train.py")
    (line,) = out.splitlines()  # a command is one line; %0A stands for a line's end
    command, _, message = line.removeprefix("::").partition("::")
    kind, _, properties = command.partition(" ")
    fields = dict(pair.split("=") for pair in properties.split(","))
    assert (kind, fields) == ("error", {"file": "train.py", "line": "8", "title": FORGETS})
    assert "%0AFix: optimizer.zero_grad()" in message
    (folder / "train.py").write_text(HEALTHY)
    assert doctor(capfd, "--format", "github", "train.py")[1].startswith("::notice::")
