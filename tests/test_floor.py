"""A PyTorch that is too old is refused in one sentence, wherever it is first used."""

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

# A fake torch package with an old version, which must not even be imported.
OLD = {
    "torch/__init__.py": "raise AssertionError('torch was imported')",
    "torch-2.5.1.dist-info/METADATA": "Version: 2.5.1",
}


def with_files(folder: Path, files: dict[str, str], program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter that finds these files before installed ones."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    start = f"import sys\nsys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]\n"
    return subprocess.run([sys.executable, "-c", start + program], capture_output=True, text=True, timeout=120)


USES = """
import gradlab
from gradlab.__main__ import main
for use in ("from gradlab import Lab", "from gradlab import watch", "gradlab.forecast('digits')"):
    try:
        exec(use)
    except gradlab._torch.UnsupportedTorchError as error:
        print(error)
gradlab.check_torch()
print(main(["forecast", "digits"]), main(["doctor", "train.py"]))
from gradlab.course import curves
"""


def test_an_old_torch_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """Also in the set-up cell, which raises nothing, and on the command line, where the exit code is 2."""
    run = with_files(tmp_path, OLD, USES)
    assert run.returncode == 1
    name, sentence = run.stderr.splitlines()[-1].split(": ", 1)
    assert name == "gradlab._torch.UnsupportedTorchError"
    assert sentence.startswith(f"gradlab needs PyTorch {OLDEST} or newer, and this is PyTorch 2.5.1. Install ")
    assert run.stdout.splitlines() == [*[sentence] * 4, "2 2"]
    assert [line.partition(": ")[2] for line in run.stderr.splitlines()[:2]] == [sentence] * 2


def test_a_torch_without_a_description_says_its_version(tmp_path: Path) -> None:
    files = {"torch/__init__.py": "__version__ = '2.4.0a0+mine'", "torch-2.5.1.dist-info/METADATA": "Version: 2.5.1"}
    run = with_files(tmp_path, files, "import torch, gradlab\ngradlab.check_torch()")
    assert "this is PyTorch 2.4.0a0+mine. " in run.stdout


@pytest.mark.parametrize(
    ("version", "works"),
    [
        (f"{OLDEST}.0", True),
        (f"{OLDEST}.0a0+git1234567", True),
        ("3.0", True),
        ("2.9.1", False),  # as a string it is larger than 2.11
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
