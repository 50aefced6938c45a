"""``%load_ext gradlab`` and ``%%doctor``, in an IPython shell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

FORGETFUL = """%%doctor

for _ in range(12):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
seen = len(list(model.parameters()))
seen"""
FORGETS = "missing-zero-grad"
SETUP = """import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)"""


@pytest.fixture
def run() -> Iterator[Callable[[str], tuple[object, str]]]:
    shell = InteractiveShell(colors="nocolor")

    def run(cell: str) -> tuple[object, str]:
        with capture_output() as printed:
            result = shell.run_cell(cell, store_history=True)
        outputs = [str(output.data["text/plain"]) for output in printed.outputs]
        return result.error_in_exec or result.error_before_exec or result.result, "".join([printed.stdout, *outputs])

    assert run("%load_ext gradlab")[0] is None
    assert run(SETUP)[0] is None
    yield run
    shell.history_manager.end_session()


def test_a_cell_runs_in_the_namespace_and_is_reported_by_line(run) -> None:
    value, output = run(FORGETFUL)
    assert value == 2
    assert f"error: {FORGETS}  at cell:5" in output  # counted from the line of %%doctor, as the notebook counts
    assert run("seen")[0] == 2


def test_a_healthy_cell_and_one_with_an_ignored_finding(run) -> None:
    healthy = FORGETFUL.replace("optimizer.step()", "optimizer.step(); optimizer.zero_grad()")
    assert run(healthy)[1].count("No findings.") == 1
    ignored = FORGETFUL.replace("optimizer.step()", f"optimizer.step()  # gradlab: ignore[{FORGETS}]")
    output = run(ignored)[1]
    assert FORGETS not in output
    assert "No findings, 1 ignored by comment." in output


def test_an_error_in_the_cell_shows_as_without_the_magic(run) -> None:
    cell = "def train():\n    loss = model(torch.randn(8, 4)).sum()\n    loss.backward()\n    loss.backward()\ntrain()"
    plain, as_usual = run(cell)
    error, output = run(f"%%doctor\n{cell}")
    assert type(error) is type(plain) is RuntimeError
    shown = output[: output.index(str(error))]
    assert "gradlab/doctor" not in shown
    assert "run_cell_magic" not in shown
    assert [line - 1 for line in lines_of_cell(shown)] == lines_of_cell(as_usual) == [5, 4]
    assert "backward-twice" in output


def test_a_syntax_error_is_shown_and_arguments_are_refused(run) -> None:
    error, output = run("%%doctor\nfor x in\n")
    assert isinstance(error, SyntaxError)
    assert re.search(r"(:|line )2\b", output)
    error, _ = run("%%doctor --fast\n1")
    assert "takes no arguments, got '--fast'" in str(error)


def test_magics_last_values_and_semicolons_work_as_elsewhere(run) -> None:
    assert run("%%doctor\nnames = %who_ls\n'model' in names")[0] is True
    assert run("%%doctor\n1 + 1;")[0] is None


def lines_of_cell(shown: str) -> list[int]:
    """Return the lines of the cell in a traceback."""
    return [int(line) for line in re.findall(r"(?:ipython-input\S*>:|Cell In\S*, line )(\d+)", shown)]
