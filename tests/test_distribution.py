"""The distribution: one version and name everywhere, all files, and existing lessons."""

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


# The name without "torch-" is another project's on the package index. The brackets keep this file from matching.
MISLEADING = (
    r"pip3? insta[l]l(?:[^`\n]*[\s'\"])?gradlab(?![\w/.-])",
    r"\b[Ii]nsta[l]l gradlab\b",
    r"(?<![\w/.-])grad[l]ab(?:\[\w+\])? ?(?:==|>=|~=|@ git|@git)",
    r"pip[x ]* (?:run|show|download) gradl[a]b\b",
)


def misleading(text: str) -> list[str]:
    return [match[0] for pattern in MISLEADING for match in re.finditer(pattern, text)]


def test_no_text_says_to_install_the_other_package() -> None:
    assert [(name, match) for name, text in FILES.items() for match in misleading(text)] == []


def test_the_name_to_install_is_the_distribution_s() -> None:
    for name, text in FILES.items():
        for called in text.split(" @ git+https")[:-1]:
            assert not re.search(r"\w$", called) or re.search(r"[\w-]+$", called)[0] == NAME, name


def lessons() -> set[tuple[str, str]]:
    """Return each notebook to which the package refers, with the section or ""."""
    codes = {(code.notebook, code.section) for rule in (*RULES, KnownErrors) for code in rule.codes}
    rows = {(row.lesson, row.section) for row in cheat_sheet().pitfalls}
    return codes | rows | {(claim.home, "") for claim in CLAIMS.values()}


@pytest.mark.parametrize(("notebook", "section"), sorted(lessons()))
def test_a_lesson_is_a_notebook_and_a_heading_of_it(notebook: str, section: str) -> None:
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert not section or re.search(rf"^###? {re.escape(section)}$", text, re.M)


def test_all_files_are_shipped() -> None:
    """MANIFEST.in covers each tracked file; the release also builds the archives and compares them."""
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()]
    grafted = {fields[1] for fields in lines if fields and fields[0] == "graft"}
    included = [pattern for fields in lines if fields and fields[0] == "include" for pattern in fields[1:]]
    for name in FILES:
        first, _, rest = name.partition("/")
        assert first in grafted if rest else any(_matches(name, pattern) for pattern in included), name


def _matches(name: str, pattern: str) -> bool:
    """Match as setuptools does: a star matches no leading dot."""
    return Path(name).match(pattern) and (pattern.startswith(".") or not name.startswith("."))
