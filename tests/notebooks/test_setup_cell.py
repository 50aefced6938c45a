"""The set-up cell of the notebooks, run unchanged in a clone, with gradlab installed, and without it.

Each case is a folder with fake packages, alone on the path (``python -S``), so installed packages have no effect.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_series import NOTEBOOKS, ROOT, sources_of

CELL = sources_of(NOTEBOOKS[1], "code")[0]
TORCH = "__version__ = '{}'\ndef manual_seed(seed): print('seed', seed)\ndef set_num_threads(n): print('threads', n)\n"
SILENT = ["seed 0", "threads 1"]
"""Output without a message of the cell: that of the fake torch."""
SENTENCE = (
    "ImportError: No gradlab is here, or another package of that name: open this notebook in the folder notebooks of a "
    "clone, or run %pip install PATH_OF_A_CLONE in a cell, restart the kernel, and run this cell again."
)


def gradlab_in(folder: Path) -> Path:
    """Copy the part of the package that the cell needs: top-level modules, and a folder that identifies it."""
    package = folder / "gradlab"
    package.mkdir(parents=True)
    for path in (ROOT / "gradlab").glob("_*.py"):
        shutil.copy(path, package)
    (package / "course").mkdir()
    return folder


def module(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class Host:
    """A machine with a torch."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site, self.notebooks = folder, folder / "site", folder / "home" / "notebooks"
        self.notebooks.mkdir(parents=True)
        module(self.site / "torch.py", TORCH.format("2.13.0"))

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run the cell; the last line of the errors is the file of the gradlab that was found."""
        after = "import sys, gradlab; print(gradlab.__file__, file=sys.stderr)"
        return subprocess.run(
            [sys.executable, "-S", "-c", f"{CELL}\n{after}"],
            cwd=self.notebooks,
            env={**os.environ, "PYTHONPATH": str(self.site)},
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


CLONES = {"around": ".", "beside": "gradlab", "below": "notebooks/gradlab"}


@pytest.mark.parametrize(
    ("clone", "installed"), [("around", "ours"), ("beside", "another"), ("below", ""), ("", "ours")]
)
def test_a_clone_is_used_and_else_what_is_installed(host: Host, clone: str, installed: str) -> None:
    expected = gradlab_in(host.notebooks.parent / CLONES[clone]) if clone else host.site
    if installed == "ours":
        gradlab_in(host.site)
    elif installed == "another":
        module(host.site / "gradlab" / "__init__.py", "raise RuntimeError('this is a lab of another kind')")
    result = host.run()
    assert result.returncode == 0, result.stderr
    assert Path(result.stderr.splitlines()[-1]).parents[1].samefile(expected)
    assert result.stdout.splitlines() == SILENT


@pytest.mark.parametrize("path", ["", "site/gradlab/__init__.py", "home/notebooks/gradlab/x"])
def test_without_it_one_sentence_says_how_to_get_it(host: Host, path: str) -> None:
    """Also where another package or folder has this name; it is not changed."""
    if path:
        module(host.folder / path, "of = 'another kind'")
    result = host.run()
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == SENTENCE
    assert "During handling" not in result.stderr, "the sentence is alone"
    assert not path or (host.folder / path).read_text(encoding="utf-8") == "of = 'another kind'"


def test_an_old_torch_is_reported(host: Host) -> None:
    module(host.site / "torch-2.4.1.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.4.1\n")
    gradlab_in(host.site)
    first, *rest = host.run().stdout.splitlines()
    assert "this is PyTorch 2.4.1" in first
    assert rest == SILENT
