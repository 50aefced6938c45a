"""The documents: links and files that they name exist, and versions agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import gradlab

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(path for pattern in ("*.md", "gradlab/**/*.md", "tests/**/*.md") for path in ROOT.glob(pattern))
EACH = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
NOT_OURS = {"train.py", "compare.py", "gradlab/compare.py"}  # learners' scripts, and a name that is avoided
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@EACH
def test_links_into_the_repository_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.S)
    targets = re.findall(r"\]\(([^)#\s]+)", text)
    assert [target for target in targets if ":" not in target and not (path.parent / target).exists()] == []


@EACH
def test_files_that_are_named_exist(path: Path) -> None:
    if path.name == "CHANGELOG.md":
        pytest.skip("it names deleted files")
    named = re.findall(r"`([\w./-]+\.(?:py|md|toml|css|txt))`", path.read_text(encoding="utf-8"))
    named = [name for name in named if "NAME" not in name and name not in NOT_OURS]
    homes = (path.parent, ROOT, ROOT / "gradlab")
    # A name without its folder may be in any folder.
    everywhere = {file.name for folder in ("gradlab", "tests") for file in (ROOT / folder).rglob("*")}
    missing = [name for name in named if name not in everywhere and not any((home / name).exists() for home in homes)]
    assert missing == []


def test_hooks_have_the_versions_of_the_requirements() -> None:
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", read("requirements.txt"), re.M))
    hooks = dict(re.findall(r"github\.com/\S+/(ruff|typos)\S*\s+rev: v(\S+)", read(".pre-commit-config.yaml")))
    assert hooks == {"ruff": pinned["ruff"], "typos": pinned["typos"]}


def test_the_citation_is_of_this_version() -> None:
    citation = dict(re.findall(r"^([\w-]+): (.+)$", read("CITATION.cff"), re.M))
    assert citation["version"] == gradlab.__version__
    assert citation["license"] == PROJECT["license"]


def test_names_of_tests_are_short() -> None:
    names = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }
    assert [name for name in names if len(name) > 60] == []
