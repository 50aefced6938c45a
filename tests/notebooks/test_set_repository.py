"""The repository's address is one setting; one command writes all that follows from it, and takes it out again."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import nbformat
import pytest
import yaml
from project_files import tree
from set_repository import MARKED, PLACES, ROOT, WHERE, clear, marks, rewrite, set_up_cell, setting

SCHOOL = "https://github.com/YOU/grad-course"
OTHER = "https://github.com/OWNER/other.name"
# What the address is in; of a file that has more, the tests that read it. Of the pages one is enough.
BOTH = """
    test_addresses.py::test_every_address_is_ours_or_a_cited_source_s_and_every_source_is_cited
    test_distribution.py test_documents.py test_classroom.py test_workflows.py notebooks/test_series.py
    notebooks/test_set_repository.py::test_this_repository_says_what_its_setting_says
    notebooks/test_set_repository.py::test_without_an_address_nothing_follows_from_it
    commands/test_page.py::test_a_notebook_is_one_page_with_all_its_formulas_and_pictures[03_forgetting_zero_grad]
"""
FOLLOWS = re.compile(r"git\+http|mybinder\.org/v2|research\.google\.com/github|\[Open (?:on|in) |\[project\.urls\]")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the files that the command may change, without an address."""
    for path in (path for pattern in WHERE for path in ROOT.glob(pattern)):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    clear(tmp_path)
    return tmp_path


def contents(root: Path) -> dict[str, bytes]:
    """Every file, byte for byte."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def read(root: Path, name: str) -> str:
    return (root / name).read_text(encoding="utf-8")


def cell(root: Path, notebook: str, which: str) -> str:
    (found,) = [each for each in json.loads(read(root, notebook))["cells"] if each["id"] == which]
    return "".join(found["source"])


def test_this_repository_says_what_its_setting_says(copy: Path) -> None:
    if setting()[0]:
        rewrite(*setting(), copy)
    made = contents(copy)
    assert {name: (ROOT / name).read_bytes() for name in made} == made


def test_there_and_back_again_byte_for_byte(copy: Path) -> None:
    empty = contents(copy)
    rewrite(f"{SCHOOL}.git", "main", copy)
    school = contents(copy)
    rewrite(OTHER, "v9.1", copy)
    assert b"grad-course" not in b"".join(contents(copy).values())
    rewrite(f"{SCHOOL}/", "main", copy)
    assert contents(copy) == school
    assert rewrite(SCHOOL, "main", copy) == []
    clear(copy)
    assert contents(copy) == empty
    assert clear(copy) == []


def test_every_place_that_changes_is_listed(copy: Path) -> None:
    before = contents(copy)
    listed = rewrite(SCHOOL, "main", copy)
    after = contents(copy)
    for path in copy.glob("notebooks/*.ipynb"):
        text = path.read_text(encoding="utf-8")
        assert f"{nbformat.writes(nbformat.reads(text, as_version=4))}\n" == text
    assert {place.partition(": ")[0] for place in listed} == {name for name in after if after[name] != before[name]}
    notebooks = [f"notebooks/{path.name}" for path in sorted(copy.glob("notebooks/*.ipynb"))]
    wanted = [f"{name}: {mark}" for name, mark in marks(copy)] + [f"{name}: set-up cell" for name in notebooks]
    assert sorted(listed) == sorted(wanted)
    assert sorted(clear(copy)) == sorted(wanted)


def test_each_mark_has_a_text_and_each_text_a_mark() -> None:
    assert {mark for _, mark in marks()} == set(PLACES)
    known = {path.relative_to(ROOT).as_posix() for pattern in WHERE for path in ROOT.glob(pattern)}
    assert {name for name, text in tree() if MARKED.search(text)} <= known


def test_without_an_address_nothing_follows_from_it(copy: Path) -> None:
    assert setting(copy) == ("", "")
    for name in contents(copy):
        lines = [line for line in read(copy, name).splitlines() if "/YOU/NAME/" not in line]  # says how to make a link
        assert name == "CHANGELOG.md" or FOLLOWS.findall("\n".join(lines)) == []  # that one tells what was
    assert "urls" not in tomllib.loads(read(copy, "pyproject.toml"))["project"]
    assert "repository-code" not in yaml.safe_load(read(copy, "CITATION.cff"))
    assert yaml.safe_load(read(copy, ".github/ISSUE_TEMPLATE/config.yml")) == {"blank_issues_enabled": True}
    assert "pip" not in cell(copy, "notebooks/03_forgetting_zero_grad.ipynb", "setup").replace("%pip", "")


def opened(text: str) -> tuple[str, str]:
    """Check the links to Binder and Colab in a text by the forms that these sites publish; return what they open."""
    (binder,) = set(re.findall(r"https://mybinder\.org/v2/[^)\s]+", text))
    there = urlsplit(binder)
    _, version, provider, owner, name, ref = there.path.split("/")  # /v2/gh/OWNER/NAME/REF
    assert (version, provider, f"{owner}/{name}", ref) == ("v2", "gh", "YOU/grad-course", "main")
    (path,) = parse_qs(there.query)["urlpath"]
    (colab,) = set(re.findall(r"https://colab\.research\.google\.com/github/[^)\s]+", text))
    parts = urlsplit(colab).path.split("/", 6)  # /github/OWNER/NAME/blob/REF/PATH
    assert parts[:6] == ["", "github", "YOU", "grad-course", "blob", "main"]
    return path.removeprefix("lab/tree/"), parts[6]


def test_with_an_address_every_place_has_it(copy: Path) -> None:
    rewrite(SCHOOL, "main", copy)
    for path in sorted(copy.glob("notebooks/*.ipynb")):
        name = f"notebooks/{path.name}"
        assert opened(cell(copy, name, "title")) == (name, name)
        assert (ROOT / name).is_file()
        assert cell(copy, name, "setup") == set_up_cell(SCHOOL, "main")
        assert f'needed = ["torch-gradlab @ git+{SCHOOL}@main"' in cell(copy, name, "setup")
    readme = read(copy, "README.md").partition("## Your own copy")[0]
    first = "notebooks/00_start_here.ipynb"
    assert opened(readme) == (first, first)
    assert len(re.findall(r"\[!\[Open [^]]+\]\(https://\S+badge\S*\.svg\)\]\(https://", readme)) == 2
    assert readme.count(f'"torch-gradlab @ git+{SCHOOL}@main"') == 2
    assert f"({SCHOOL}/issues)" in readme
    urls = tomllib.loads(read(copy, "pyproject.toml"))["project"]["urls"]
    assert urls == {
        "Homepage": SCHOOL,
        "Changelog": f"{SCHOOL}/blob/main/CHANGELOG.md",
        "Issues": f"{SCHOOL}/issues",
    }
    assert yaml.safe_load(read(copy, "CITATION.cff"))["repository-code"] == SCHOOL
    (link,) = yaml.safe_load(read(copy, ".github/ISSUE_TEMPLATE/config.yml"))["contact_links"]
    assert link["url"] == f"{SCHOOL}/security/advisories/new"
    assert link["url"] in read(copy, "SECURITY.md")
    (pulled,) = re.findall(r"git-pull\?\S+", read(copy, "notebooks/CLASSROOM.md"))
    assert f"repo={SCHOOL}&" in pulled
    assert pulled.endswith(f"lab/tree/grad-course/{first}")


def test_a_lesson_is_an_address_then(copy: Path) -> None:
    rewrite(SCHOOL, "main", copy)
    scope: dict[str, object] = {"__name__": "formatting"}
    exec(compile(read(copy, "gradlab/formatting.py"), "formatting.py", "exec"), scope)
    assert scope["lesson_address"]("04_zero_grad") == f"{SCHOOL}/blob/main/notebooks/04_zero_grad.ipynb"
    assert scope["project_address"]() == SCHOOL


def test_without_a_tag_the_old_one_stays(copy: Path) -> None:
    rewrite(SCHOOL, root=copy)
    assert setting(copy) == (SCHOOL, "main")
    rewrite(SCHOOL, "v1.0", copy)
    rewrite(OTHER, root=copy)
    assert setting(copy) == (OTHER, "v1.0")


@pytest.mark.parametrize(
    ("address", "tag", "words"),
    [
        (SCHOOL, "my branch", "tag or branch"),
        ("", "", "OWNER/NAME"),
        ("gradlab", "", "OWNER/NAME"),
        ("https://gitlab.com/YOU/NAME", "", "OWNER/NAME"),
        (SCHOOL + "/c", "", "OWNER/NAME"),
        ("https://github.com/a", "", "OWNER/NAME"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_changes(tmp_path: Path, address: str, tag: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):  # before it reads a file: there is none
        rewrite(address, tag, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
def test_the_whole_is_right_in_the_other_state(tmp_path: Path) -> None:
    """The tests of documents, notebooks, lessons and reports pass in a copy with an address; here, they have none."""
    address = "" if setting()[0] else SCHOOL
    for name, _ in tree():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "notebooks" / "images", tmp_path / "notebooks" / "images", dirs_exist_ok=True)
    command = [sys.executable, tmp_path / "tests/set_repository.py", *([address, "main"] if address else ["--clear"])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (setting(tmp_path)[0], bool(done.stdout.strip())) == (address, address != setting()[0])
    tests = [f"tests/{name}" for name in BOTH.split()]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
