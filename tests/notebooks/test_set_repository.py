"""The repository's address stands in one place, and one command rewrites all that is made from it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project_files import tree
from set_repository import ROOT, WHERE, owner_and_name, rewrite, tag


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for path in (path for pattern in WHERE for path in ROOT.glob(pattern)):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return tmp_path


def texts(root: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for pattern in WHERE for path in sorted(root.glob(pattern))}


def test_there_and_back_again(copy: Path) -> None:
    before, old, release = texts(copy), owner_and_name(copy), tag(copy)
    changed = rewrite("https://github.com/school/grad-course.git", "main", copy)
    after = texts(copy)
    assert set(changed) == {path for path in after if after[path] != before[path]}
    assert not any(f"/{old}" in text for text in after.values())
    assert not any(
        f"school/grad-course{way}{release}" in text for text in after.values() for way in ("/blob/", "/", "@")
    )
    assert "git+https://github.com/school/grad-course@main" in after[copy / "README.md"]
    assert "https://github.com/school/grad-course/blob/main/notebooks" in after[copy / "gradlab/formatting.py"]
    for path in copy.glob("notebooks/*.ipynb"):
        assert f"mybinder.org/v2/gh/school/grad-course/main?urlpath=lab/tree/notebooks/{path.name}" in after[path]
        assert f"colab.research.google.com/github/school/grad-course/blob/main/notebooks/{path.name}" in after[path]
        assert '[\\"torch-gradlab @ git+https://github.com/school/grad-course@main\\"' in after[path]
    rewrite(f"https://github.com/{old}/", release, copy)
    assert texts(copy) == before


def test_nothing_outside_these_files_names_the_address() -> None:
    known = {str(path.relative_to(ROOT)) for pattern in WHERE for path in ROOT.glob(pattern)}
    named = {name for name, text in tree() if f"github.com/{owner_and_name()}" in text}
    assert "README.md" in named
    assert named <= known


def test_without_a_branch_the_tag_stays(copy: Path) -> None:
    release = tag(copy)
    rewrite("https://github.com/school/grad-course", root=copy)
    assert tag(copy) == release
    assert f"git+https://github.com/school/grad-course@{release}" in (copy / "README.md").read_text(encoding="utf-8")


def test_a_wrong_branch_changes_nothing(copy: Path) -> None:
    before = texts(copy)
    with pytest.raises(ValueError, match="tag or branch"):
        rewrite("https://github.com/school/grad-course", "my branch", copy)
    assert texts(copy) == before


@pytest.mark.parametrize(
    "address", ["", "gradlab", "https://gitlab.com/a/b", "https://github.com/a", "https://github.com/a/b/c"]
)
def test_a_wrong_address_changes_nothing(copy: Path, address: str) -> None:
    before = texts(copy)
    with pytest.raises(ValueError, match="OWNER/NAME"):
        rewrite(address, root=copy)
    assert texts(copy) == before


def test_the_command_says_what_it_wants() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tests/set_repository.py", "x"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "must look like https://github.com/OWNER/NAME, got 'x'" in done.stderr
    assert "Traceback" not in done.stderr
