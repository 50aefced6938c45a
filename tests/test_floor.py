"""Below the oldest PyTorch that gradlab works with, people read one sentence where they meet it."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import gradlab
from gradlab import _torch

ROOT = Path(__file__).parents[1]
OLDEST = ".".join(map(str, _torch.FLOOR))

# A torch package that is none: it says that it is old, and must not even be imported.
OLD = {
    "torch/__init__.py": "raise AssertionError('torch was imported')",
    "torch-2.5.1.dist-info/METADATA": "Version: 2.5.1",
}


def with_files(folder: Path, files: dict[str, str], program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter that finds these files before anything that is installed."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    start = f"import sys\nsys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]\n"
    return subprocess.run([sys.executable, "-c", start + program], capture_output=True, text=True, timeout=120)


USES = """
import gradlab
for use in ("from gradlab import Lab", "from gradlab import watch", "gradlab.forecast('digits')"):
    try:
        exec(use)
    except gradlab._torch.UnsupportedTorchError as error:
        print(error)
gradlab.check_torch()
from gradlab.course import curves
"""


def test_an_old_torch_is_refused_in_one_sentence_where_a_name_is_first_used(tmp_path: Path) -> None:
    """And the set-up cell prints the sentence and raises nothing."""
    run = with_files(tmp_path, OLD, USES)
    assert run.returncode == 1
    name, sentence = run.stderr.splitlines()[-1].split(": ", 1)
    assert name == "gradlab._torch.UnsupportedTorchError"
    assert sentence.startswith(f"gradlab needs PyTorch {OLDEST} or newer, and this is PyTorch 2.5.1. Install ")
    assert run.stdout.splitlines() == [sentence] * 4
    assert issubclass(_torch.UnsupportedTorchError, ImportError)


@pytest.mark.parametrize("command", [["forecast", "digits"], ["doctor", "train.py"]])
def test_the_command_line_prints_one_line_and_exits_with_2(command: list[str], tmp_path: Path) -> None:
    run = with_files(tmp_path, OLD, f"from gradlab.__main__ import main\nraise SystemExit(main({command}))")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1
    assert f"gradlab needs PyTorch {OLDEST} or newer, and this is PyTorch 2.5.1. " in run.stderr


def test_a_torch_without_a_description_says_its_version_when_it_is_imported(tmp_path: Path) -> None:
    files = {"torch/__init__.py": "__version__ = '2.4.0a0+mine'", "torch-2.5.1.dist-info/METADATA": "Version: 2.5.1"}
    run = with_files(tmp_path, files, "import torch, gradlab\ngradlab.check_torch()")
    assert "this is PyTorch 2.4.0a0+mine. " in run.stdout


@pytest.mark.parametrize(
    ("version", "works"),
    [
        (f"{OLDEST}.0", True),
        (f"{OLDEST}.0a0+git1234567", True),
        (f"{OLDEST}.1+cpu", True),
        ("2.100.0+cu130", True),
        ("3.0", True),
        ("2.9.1", False),  # as text it is more than 2.11
        ("2.8.0+cpu", False),
        ("2.5.0a0+872d972e41.nv24.08", False),
        ("1.13.1", False),
        ("unknown", True),
    ],
)
def test_versions_compare_as_numbers(version: str, works: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_torch, "_installed", lambda: version)
    assert (_torch.complaint() is None) == works


def test_no_torch_at_all(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def none(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(metadata, "version", none)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    gradlab.check_torch()
    assert capsys.readouterr().out.startswith(f"gradlab needs PyTorch {OLDEST} or newer, and none is installed. ")
    with pytest.raises(ImportError, match="none is installed"):
        _torch.require_torch()


def test_the_dependency_says_the_same() -> None:
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert f"torch>={OLDEST}" in dependencies
    assert f"PyTorch {OLDEST} or newer" in (ROOT / "README.md").read_text(encoding="utf-8")
