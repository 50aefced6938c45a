"""The plugin of pytest, by tests that pytest itself runs: ``@pytest.mark.trains``."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tomllib
from importlib import import_module, metadata
from pathlib import Path

import pytest
import torch._dynamo  # before pytester notes which modules there are: the first step imports it, and it loads only once

import gradlab
from gradlab.doctor import watch
from gradlab.doctor.rules import RULES

pytest_plugins = ["pytester"]

HOME = Path(gradlab.__file__).parents[1]
PLUGIN = "gradlab.doctor.integrations.pytest_plugin"
FORGETS = "missing-zero-grad"
LOADED = (torch._dynamo, watch)
LOOP = """
import pytest, torch

def train(forgets):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(12):
        if not forgets:
            optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # whether it is installed or not, it is loaded once

    def runs(*tests: str) -> pytest.RunResult:
        pytester.makepyfile(LOOP + "\n".join(tests))
        return pytester.runpytest_inprocess("-p", PLUGIN, "--strict-markers")

    return runs


def test_a_test_fails_on_findings_and_no_other_does(run) -> None:
    result = run(
        "@pytest.mark.trains\ndef test_forgets():\n    train(forgets=True)",
        "@pytest.mark.trains\ndef test_healthy():\n    train(forgets=False)",
        "def test_unmarked():\n    train(forgets=True)",
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([f"error: {FORGETS}*test_a_test_fails_on_findings*:11", "  fix: *zero_grad()*"])
    assert "pytest_plugin.py" not in result.stdout.str()


def test_the_marker_chooses_what_counts(run) -> None:
    result = run(
        f"@pytest.mark.trains(ignore='{FORGETS}')\ndef test_ignored():\n    train(forgets=True)",
        f"@pytest.mark.trains(select=['{FORGETS}', 'double-step'])\ndef test_selected():\n    train(forgets=True)",
        "@pytest.mark.trains(select='double-step')\ndef test_not_selected():\n    train(forgets=True)",
        "@pytest.mark.xfail(strict=True)\n@pytest.mark.trains\ndef test_known():\n    train(forgets=True)",
    )
    result.assert_outcomes(passed=2, failed=1, xfailed=1)


def test_a_code_that_has_to_be_asked_for_is_selected_by_the_marker(run, monkeypatch: pytest.MonkeyPatch) -> None:
    for rule in RULES:
        codes = [dataclasses.replace(code, asked=code.name == FORGETS) for code in rule.codes]
        monkeypatch.setattr(rule, "codes", frozenset(codes))
    result = run(
        "@pytest.mark.trains\ndef test_not_asked():\n    train(forgets=True)",
        f"@pytest.mark.trains(select='{FORGETS}')\ndef test_asked():\n    train(forgets=True)",
    )
    result.assert_outcomes(passed=1, failed=1)


def test_known_findings_of_the_settings_fail_no_test(run, pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml('[tool.gradlab.doctor]\nbaseline = "base.json"\n')
    name = "test_known_findings_of_the_settings_fail_no_test.py"
    known = {"file": name, "code": FORGETS, "text": "optimizer.step()", "count": 1}
    marked = "@pytest.mark.trains\ndef test_it():\n    train(forgets=True)"
    run(marked).assert_outcomes(failed=1)  # there is no such file
    (pytester.path / "base.json").write_text(json.dumps({"findings": [known]}))
    run(marked).assert_outcomes(passed=1)


def test_settings_beside_the_test_hold_and_the_marker_wins(run, pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml(f'[tool.gradlab.doctor]\nignore = ["{FORGETS}"]\n')
    result = run(
        "@pytest.mark.trains\ndef test_ignored():\n    train(forgets=True)",
        "@pytest.mark.trains(ignore=())\ndef test_not_ignored():\n    train(forgets=True)",
    )
    result.assert_outcomes(passed=1, failed=1)


def test_a_test_that_fails_by_itself_keeps_its_error_and_gets_the_report(run) -> None:
    result = run("@pytest.mark.trains\ndef test_both():\n    train(forgets=True)\n    assert 1 == 2")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       assert 1 == 2", "*gradlab doctor*", f"error: {FORGETS}*"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("ignore='nothing-like-it'", "no code 'nothing-like-it'"),
        ("fail_on='fatal'", "error, warning, hint"),
        ("wrong=1", "wrong"),
        ("'missing-zero-grad'", "takes select=, ignore= and fail_on="),
    ],
)
def test_a_marker_with_bad_arguments_is_refused(run, arguments: str, said: str) -> None:
    result = run(f"@pytest.mark.trains({arguments})\ndef test_it():\n    pass")
    result.assert_outcomes(failed=1)
    assert said in result.stdout.str()


def test_torch_is_imported_only_for_a_test_that_trains(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import sys\ndef test_it():\n    assert 'torch' not in sys.modules\n")
    assert "1 passed" in pytest_alone(tmp_path, "-p", PLUGIN)


def test_the_package_loads_when_pytest_rewrites_its_asserts(tmp_path: Path) -> None:
    """As it does with each package that is installed with an entry point of pytest's."""
    (tmp_path / "conftest.py").write_text("import pytest\npytest.register_assert_rewrite('gradlab')\n")
    (tmp_path / "test_it.py").write_text(
        "import gradlab.doctor as doctor\n"
        "def test_it():\n"
        "    assert 'Rewriting' in type(doctor.__spec__.loader).__name__\n"
        "    assert 'watch' in doctor.__all__\n"
    )
    assert "1 passed" in pytest_alone(tmp_path)


def pytest_alone(folder: Path, *arguments: str) -> str:
    """Run pytest in a process of its own, without the plugins that happen to be installed."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(HOME)}
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


def test_the_entry_point_leads_to_the_plugin() -> None:
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))
    (value,) = project["project"]["entry-points"]["pytest11"].values()
    assert metadata.EntryPoint("gradlab", value, "pytest11").load() is import_module(PLUGIN)
