"""What is installed: one version and name everywhere, all files of the package, and lessons that exist."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest
from project_files import ROOT, tree

import gradlab
from gradlab.course.cheat_sheet import cheat_sheet
from gradlab.course.claims import CLAIMS
from gradlab.doctor.rules import RULES
from gradlab.doctor.rules.known_errors import KnownErrors

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME = PROJECT["name"]
FILES = dict(tree())


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["dynamic"]
    face = ast.parse((ROOT / "gradlab" / "__init__.py").read_text(encoding="utf-8"))
    values = [node.value for node in face.body if isinstance(node, ast.Assign) and node.targets[0].id == "__version__"]
    assert [ast.literal_eval(value) for value in values] == [gradlab.__version__]


# The name without "torch-" is somebody else's on the package index. The bracketed letters keep this file out.
OTHERS = (
    r"pip3? insta[l]l(?:[^`\n]*[\s'\"])?gradlab(?![\w/.-])",
    r"\b[Ii]nsta[l]l gradlab\b",
    r"(?<![\w/.-])grad[l]ab(?:\[\w+\])? ?(?:==|>=|~=|@ git|@git)",
    r"pip[x ]* (?:run|show|download) gradl[a]b\b",
)


def misleading(text: str) -> list[str]:
    return [found[0] for pattern in OTHERS for found in re.finditer(pattern, text)]


def test_nothing_tells_to_install_the_package_of_somebody_else() -> None:
    assert [(name, words) for name, text in FILES.items() for words in misleading(text)] == []


def test_the_name_to_install_is_the_distribution_s() -> None:
    for name, text in FILES.items():
        for called in text.split(" @ git+https")[:-1]:
            assert not re.search(r"\w$", called) or re.search(r"[\w-]+$", called)[0] == NAME, name


def lessons() -> set[tuple[str, str]]:
    """Every notebook that the package sends its readers to, with the section if one is named."""
    codes = {(code.notebook, code.section) for rule in (*RULES, KnownErrors) for code in rule.codes}
    rows = {(row.lesson, row.section) for row in cheat_sheet().pitfalls}
    return codes | rows | {(claim.home, "") for claim in CLAIMS.values()}


@pytest.mark.parametrize(("notebook", "section"), sorted(lessons()))
def test_a_lesson_is_a_notebook_and_a_heading_of_it(notebook: str, section: str) -> None:
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert not section or re.search(rf"^###? {re.escape(section)}$", text, re.M)


def test_all_files_are_shipped() -> None:
    """A tracked folder or file that MANIFEST.in leaves out is in no archive; the release builds them and compares."""
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()]
    grafted = {words[1] for words in lines if words and words[0] == "graft"}
    included = [pattern for words in lines if words and words[0] == "include" for pattern in words[1:]]
    for name in FILES:
        first, _, rest = name.partition("/")
        assert first in grafted if rest else any(_matches(name, pattern) for pattern in included), name


def _matches(name: str, pattern: str) -> bool:
    """As setuptools matches: a star takes no leading dot."""
    return Path(name).match(pattern) and (pattern.startswith(".") or not name.startswith("."))
