"""Files for GitHub are well-formed: workflows, issue forms, and Dependabot's settings."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = {path.name: path for path in sorted((GITHUB / "workflows").glob("*.yml"))}
FORMS = {path.name: path for path in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"}
FOLDERS = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in (".git", ".venv", "dist"))
NEEDED_ATTRIBUTES = {
    "input": {"label"},
    "textarea": {"label"},
    "dropdown": {"label", "options"},
    "checkboxes": {"label", "options"},
}


def read(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow: dict[Any, Any]) -> Iterator[tuple[dict[Any, Any], dict[Any, Any]]]:
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            yield job, step


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_says_when_with_which_rights_and_for_how_long(name: str) -> None:
    workflow = read(WORKFLOWS[name])
    assert workflow["name"]
    assert workflow[True], "`on` is a truth value in YAML 1.1"
    assert workflow["permissions"] == {"contents": "read"}, "more rights belong to the job that needs them"
    for job in workflow["jobs"].values():
        assert {"runs-on", "timeout-minutes", "steps"} <= set(job)
        needed = job.get("needs", [])
        assert ({needed} if isinstance(needed, str) else set(needed)) <= set(workflow["jobs"])
    for _, step in steps(workflow):
        assert len({"uses", "run"} & set(step)) == 1
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "actions/checkout@v5"))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_shell_lines_are_shell_and_name_files_that_exist(name: str) -> None:
    bash = shutil.which("bash")
    for _, step in steps(read(WORKFLOWS[name])):
        script = re.sub(r"\$\{\{.*?\}\}", "x", step.get("run", ""))
        if bash and script:
            result = subprocess.run([bash, "-n"], input=script, capture_output=True, text=True, check=False)
            assert result.returncode == 0, result.stderr
        first = "|".join(map(re.escape, FOLDERS))
        named = re.findall(rf"(?<![\w./-])((?:{first})/[\w./-]*\w)", script)
        named += re.findall(r"(?<![\w./-])(pyproject\.toml|requirements\.txt|[A-Z]{4,}\.(?:md|in))\b", script)
        assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_paths_that_start_a_workflow_exist(name: str) -> None:
    for event in (read(WORKFLOWS[name])[True] or {}).values():
        for pattern in (event or {}).get("paths", []) if isinstance(event, dict) else []:
            assert next(ROOT.glob(pattern.replace("/**", "/**/*")), None), pattern


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_one_that_github_shows(name: str) -> None:
    form = read(FORMS[name])
    assert {"name", "description", "body"} <= set(form) <= {"name", "description", "labels", "body"}
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids)
    for field in form["body"]:
        assert NEEDED_ATTRIBUTES[field["type"]] <= set(field["attributes"])
        assert all(isinstance(option, str) for option in field["attributes"].get("options", []))
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_dependabot_watches_folders_that_hold_something_to_watch() -> None:
    holds = {"pip": "requirements.txt", "github-actions": ".github/workflows/*.yml", "docker": "Dockerfile"}
    updates = read(GITHUB / "dependabot.yml")["updates"]
    assert {update["package-ecosystem"] for update in updates} == set(holds)
    for update in updates:
        for folder in update.get("directories", [update.get("directory")]):
            assert next((ROOT / folder.strip("/")).glob(holds[update["package-ecosystem"]]), None), folder
