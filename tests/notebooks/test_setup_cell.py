"""The set-up cells of the notebooks, run as they stand where they may be run: in a clone, installed, on a bare host.

Each is tried without an address of the project and with one. Each situation is a folder with made-up packages on the
path and nothing else (``python -S``), so what is installed beside the tests plays no part. ``pip`` is a stand-in that
writes down what it is asked for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from set_repository import ROOT, set_up_cell

TORCH_LINES = "".join(
    next(
        cell["source"]
        for cell in json.loads((ROOT / "notebooks" / "00_start_here.ipynb").read_text(encoding="utf-8"))["cells"]
        if cell["id"] == "torch"
    )
)
FILLED = ("https://github.com/YOU/NAME", "v9.1")
RELEASE = "torch-gradlab @ git+https://github.com/YOU/NAME@v9.1"
TORCH = "__version__ = '{}'\ndef manual_seed(seed): print('seed', seed)\ndef set_num_threads(n): print('threads', n)\n"
SILENT = ["seed 0", "threads 1"]
"""What is printed where there is nothing to say: by the torch that is made up here, and nothing of the cell's."""

SENTENCE = (
    "ImportError: No gradlab is here, or another package of that name: open this notebook in the folder notebooks of a "
    "clone, or run %pip install PATH_OF_A_CLONE in a cell, restart the kernel, and run this cell again."
)


def gradlab_in(folder: Path) -> Path:
    """As much of the package as the cell needs: its face, and the folders that tell it from others."""
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
    """A machine with a torch, a pip and, unless taken away, the two packages that the labs need beside it."""

    def __init__(self, folder: Path, setting: tuple[str, str]) -> None:
        self.folder, self.cell = folder, set_up_cell(*setting)
        self.site, self.log = folder / "site", folder / "asked.json"
        self.notebooks = folder / "home" / "notebooks"
        self.notebooks.mkdir(parents=True)
        module(self.site / "torch.py", TORCH.format("2.13.0"))
        for name in ("anywidget", "psygnal"):
            module(self.site / f"{name}.py")
        gradlab_in(folder / "released")
        self.pip()

    def pip(self, *, code: int = 0) -> None:
        """Have pip end with this exit code; if it is 0 the package is there afterwards."""
        package = self.folder / "released" / "gradlab"
        lines = ["import json, shutil, sys", f"json.dump(sys.argv[1:], open({str(self.log)!r}, 'w'))"]
        if code == 0:
            lines += [f"shutil.copytree({str(package)!r}, {str(self.site / 'gradlab')!r})"]
        module(self.site / "pip" / "__init__.py")
        module(self.site / "pip" / "__main__.py", "\n".join([*lines, f"sys.exit({code})"]))

    def run(self, after: str = "import gradlab; found = gradlab.__file__") -> subprocess.CompletedProcess[str]:
        return self.run_text(f"{self.cell}\n{TORCH_LINES}\n{after}")

    def run_text(self, program: str) -> subprocess.CompletedProcess[str]:
        """Run a program that leaves something to print in ``found``."""
        return subprocess.run(
            [sys.executable, "-S", "-c", f"{program}\nimport sys; print(found, file=sys.stderr)"],
            cwd=self.notebooks,
            env={**os.environ, "PYTHONPATH": str(self.site)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    @property
    def asked(self) -> list[str] | None:
        """What pip was asked for; None if it was not called."""
        return json.loads(self.log.read_text(encoding="utf-8")) if self.log.exists() else None


@pytest.fixture(params=[("", ""), FILLED], ids=["empty", "filled"])
def host(tmp_path: Path, request: pytest.FixtureRequest) -> Host:
    """A host in which the set-up cell is tried in both of its forms."""
    return Host(tmp_path, request.param)


@pytest.fixture
def filled(tmp_path: Path) -> Host:
    return Host(tmp_path, FILLED)


@pytest.fixture
def empty(tmp_path: Path) -> Host:
    return Host(tmp_path, ("", ""))


def used(done: subprocess.CompletedProcess[str]) -> Path:
    assert done.returncode == 0, done.stderr
    return Path(done.stderr.splitlines()[-1]).parents[1]


CLONES = {"around": ".", "beside": "gradlab", "below": "notebooks/gradlab"}


@pytest.mark.parametrize(
    ("clone", "installed"), [*product(CLONES, ("ours", "another")), ("", "ours")], ids=lambda word: word or "none"
)
def test_a_clone_is_used_whatever_is_installed_and_without_one_what_is(host: Host, clone: str, installed: str) -> None:
    place = gradlab_in(host.notebooks.parent / CLONES[clone]) if clone else host.site
    if installed == "ours":
        gradlab_in(host.site)
    elif installed == "another":
        module(host.site / "gradlab" / "__init__.py", "raise RuntimeError('this is a lab of another kind')")
    done = host.run()
    assert used(done).samefile(place)
    assert done.stdout.splitlines() == SILENT
    assert host.asked is None


@pytest.mark.parametrize("path", ["site/gradlab/__init__.py", "home/notebooks/gradlab.py", "home/notebooks/gradlab/x"])
def test_another_package_or_folder_of_this_name_is_told_and_stays(host: Host, path: str) -> None:
    module(host.folder / path, "of = 'another kind'")
    done = host.run()
    assert (done.returncode, done.stdout, host.asked) == (1, "", None)
    assert done.stderr.splitlines()[-1] == SENTENCE
    assert (host.folder / path).read_text(encoding="utf-8") == "of = 'another kind'"


def test_on_a_bare_host_the_release_is_installed_and_nothing_that_is_there(filled: Host) -> None:
    done = filled.run()
    assert used(done).samefile(filled.site)
    # pip leaves a requirement alone that is there, unless it is asked to upgrade it.
    assert filled.asked == ["install", "-q", "--no-deps", RELEASE, "anywidget", "psygnal"]
    assert done.stdout.splitlines() == [f"Installing {RELEASE} anywidget psygnal", *SILENT]


def test_a_failed_installation_ends_the_cell(filled: Host) -> None:
    filled.pip(code=1)
    done = filled.run()
    assert done.returncode == 1
    assert "returned non-zero exit status 1" in done.stderr
    assert "seed" not in done.stdout


def test_without_an_address_one_sentence_says_how_to_get_it_and_pip_is_not_called(empty: Host) -> None:
    done = empty.run()
    assert (done.returncode, done.stdout, empty.asked) == (1, "", None)
    assert done.stderr.splitlines()[-1] == SENTENCE
    assert "During handling" not in done.stderr, "the sentence stands alone"


def test_an_old_torch_is_told(host: Host) -> None:
    module(host.site / "torch-2.4.1.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.4.1\n")
    gradlab_in(host.site)
    first, *rest = host.run().stdout.splitlines()
    assert "this is PyTorch 2.4.1" in first
    assert rest == SILENT


def test_the_lines_that_are_the_lesson_stand_alone() -> None:
    first, seed, threads = [line for line in TORCH_LINES.splitlines() if line]
    assert (first, seed) == ("import torch", "torch.manual_seed(0)")
    assert threads.startswith("torch.set_num_threads(1)")
    for setting, most in ((("", ""), 14), (FILLED, 19)):
        assert len([line for line in set_up_cell(*setting).splitlines() if line]) <= most
