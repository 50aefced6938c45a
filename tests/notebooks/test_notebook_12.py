"""Notebook 12: an essay on fifteen claims; the verdicts come from what PyTorch does, not from the text."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gradlab.commands.factcheck import experiments
from gradlab.course.claims import CLAIMS, VERDICT_STYLES

pytestmark = pytest.mark.notebook  # it runs cells of the notebook
NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "12_fact_check.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
TEXT = "\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
CORE = ["A7", "A14", "B3", "A13", "C9"]
ESSAY = [*CORE, "A23", "A20", "B7", "A15", "A16", "D2", "D3", "B10", "C6", "D1"]
# Verdicts for PyTorch from 2.11 on a CPU; on other devices some may differ.
EXPECTED = {
    "holds": "A1 A3 A4 A10 A11 A17 A18 A25 B1 B2 B4 B8 C4 C8 D4 D5",
    "holds inside its condition": "A2 A5 A6 A9 A20 A22 B3 B6 C1 C2 C3 C5 C6 C7 C10",
    "held until": "A19",
    "half true": "A12 A21 A23 A24 B5 B10",
    "depends": "A13 A14 A15 A16 A26 B7 C9 D1 D2",
    "does not hold": "A7 A8 B9 C11",
    "not a claim": "D3",
}


def run(*texts: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    names = {} if names is None else names
    for text in texts:
        exec(compile(text, "a cell", "exec"), names)
    return names


def cells_of(code: str) -> list[str]:
    """Return the cells of a claim; those of the common set-up for ""."""
    return [text for claim, _, text in experiments(NOTEBOOK) if claim == code]


@pytest.fixture
def names() -> dict[str, Any]:
    return run(*cells_of(""))


def test_above_every_experiment_stands_what_the_article_says() -> None:
    headings = re.findall(r"^#{3,4} ([A-D]\d+): (.*)$", TEXT, re.M)
    assert headings == [(code, CLAIMS[code].title) for code in ESSAY]
    core = TEXT.partition("\n## Deeper\n")[0]
    assert re.findall(r"^### ([A-D]\d+): ", core, re.M) == CORE
    for code in ESSAY:
        claim = CLAIMS[code]
        after = re.split(r"\n#{2,4} ", TEXT.partition(f"# {code}: {claim.title}\n")[2])[0]
        who = f"**Article {code[0]}'s program**" if claim.in_code else f"**Article {code[0]}**"
        condition = f" **Its condition:** {claim.condition}." if claim.condition else ""
        assert f"{who}, *{claim.section}*: {claim.says}{condition}" in after, code


def test_every_claim_says_what_follows() -> None:
    parts = re.split(r"^#{3,4} [A-D]\d+: ", TEXT, flags=re.M)[1:]
    assert [part.count("**What follows.**") for part in parts[:-1]] == [1] * 14
    assert parts[-1].partition("\n### ")[0].count("**What follows.**") == 1


def test_each_claim_is_judged_once_in_its_own_section() -> None:
    assert re.findall(r'verdicts\.record\("(\w+)"', "\n".join(CODE)) == ESSAY
    for code in ESSAY:
        assert f'record("{code}"' in cells_of(code)[-1]


def test_no_verdict_is_written_down() -> None:
    for text in CODE:
        assert not any(f'"{kind}"' in text for kind in VERDICT_STYLES)
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "record":
                for facts in call.args[1:3]:
                    for value in facts.values if isinstance(facts, ast.Dict) else ():
                        assert not isinstance(value, ast.Constant), text


def stored_rows() -> list[str]:
    (shown,) = [cell for cell in CELLS if cell["id"] == "table-show"]
    assert "nbval-check-output" in shown["metadata"]["tags"]
    *rows, _ = "".join(shown["outputs"][-1]["data"]["text/plain"]).splitlines()
    return rows


def test_the_verdicts_are_those_of_pytorch_on_a_cpu() -> None:
    """The stored ones; nbval compares them with those that the cells compute."""
    rows = stored_rows()
    assert [row.split()[0] for row in rows] == list(CLAIMS)
    assert all(re.search(r"\[\d\d\]$", row) for row in rows)
    kinds = sorted(EXPECTED, key=len, reverse=True)
    codes_of: dict[str, list[str]] = {kind: [] for kind in EXPECTED}
    for row in rows:
        code, _, verdict = row.split(maxsplit=2)
        codes_of[next(kind for kind in kinds if verdict.startswith(kind))].append(code)
    assert {kind: " ".join(codes) for kind, codes in codes_of.items()} == EXPECTED


def test_no_fact_is_a_double_negative() -> None:
    for row in stored_rows():
        for fact in re.findall(r"\u2717 ([^\u00b7]*?)(?= \u00b7|\. |\.$)", row)[1:]:
            assert not re.search(r"\b(?:not|never|nothing)\b", fact), row
    assert not any(word in row for row in stored_rows() for word in ("Yes:", "No:"))


def test_what_depends_is_what_the_text_names() -> None:
    """The text below the table names each claim with the verdict "depends"."""
    (why,) = ["".join(cell["source"]) for cell in CELLS if cell["id"] == "by-kind-why"]
    depends, holds_not = why.partition("*depend*")[2].split("describe a default")[0].rpartition("Three of")[::2]
    assert sorted(re.findall(r"[A-D]\d+", depends)) == sorted(EXPECTED["depends"].split())
    assert "four" in holds_not
    assert len(EXPECTED["does not hold"].split()) == 4


def test_an_experiment_stands_alone() -> None:
    """Cells read names of their own experiment, of the set-up and of Python, and no others."""
    shared = set(run(*cells_of("")))
    for code in ESSAY:
        tree = ast.parse("\n".join(cells_of(code)))
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.alias)}
        bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        names_read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        assert names_read - bound - shared <= set(dir(__builtins__)) | set(__builtins__), code


def test_with_the_former_default(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (torch.optim.Optimizer, nn.Module):

        def zero_grad(self: Any, set_to_none: bool = False, real: Callable[..., None] = kind.zero_grad) -> None:
            real(self, set_to_none=set_to_none)

        monkeypatch.setattr(kind, "zero_grad", zero_grad)
    assert run(*cells_of("A7"), names=names)["verdicts"]["A7"].verdict == "holds"


def test_the_check_of_a16_can_pass(names: dict[str, Any]) -> None:
    """The claim holds for a loop that also steps after the last batches."""
    text = "\n".join(cells_of("A16")).replace("(i + 1) % 4 == 0:", "(i + 1) % 4 == 0 or i == n - 1:")
    assert run(text, names=names)["verdicts"]["A16"].verdict == "holds"


def test_the_program_of_d3_is_the_articles(names: dict[str, Any]) -> None:
    """The same seeds lower the loss in the article's program as printed here."""
    change_of_loss = run(*cells_of("D3")[:2], names=names)["change_of_loss"]
    rows = [[1.0, 2.0], [2.0, 1.0], [3.0, 4.0], [4.0, 3.0], [5.0, 6.0], [6.0, 5.0], [7.0, 8.0], [8.0, 7.0]]
    inputs, labels = torch.tensor(rows), torch.tensor([[3.0], [3.0], [7.0], [7.0], [11.0], [11.0], [15.0], [15.0]])
    worse = 0
    for seed in range(20):
        torch.manual_seed(seed)
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        before = nn.functional.mse_loss(model(inputs), labels).item()
        optimizer.zero_grad()
        for i, (x, y) in enumerate(zip(inputs, labels, strict=True)):
            nn.functional.mse_loss(model(x), y).backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        ends_worse = nn.functional.mse_loss(model(inputs), labels).item() >= before
        worse += ends_worse
        assert (change_of_loss(seed) >= 0) == ends_worse
    assert 0 < worse < 20
