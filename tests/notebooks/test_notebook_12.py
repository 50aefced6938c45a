"""Notebook 12: a claim is tried by cells of its own; the verdicts come from what PyTorch does, not from the text."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab.commands.factcheck import experiments
from gradlab.course.claims import CLAIMS

pytestmark = pytest.mark.notebook  # it runs cells of the notebook
NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "12_fact_check.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
TOLD = "\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
# What PyTorch from 2.11 on does on a CPU. (Not on the list of what it may do elsewhere.)
EXPECTED = {
    "holds": "A1 A3 A4 A10 A11 A16 A17 A18 A25 B1 B2 B4 B8 C3 C4 C8 D3 D4 D5",
    "holds inside its condition": "A2 A5 A6 A9 A12 A20 A22 B3 B6 C1 C2 C5 C6 C7 C10",
    "held until": "A19",
    "depends": "A13 A14 A15 A21 A23 A24 A26 B5 B7 B10 C9 D1 D2",
    "does not hold": "A7 A8 B9 C11",
}


def run(*texts: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    names = {} if names is None else names
    for text in texts:
        exec(compile(text, "a cell", "exec"), names)
    return names


def cells_of(code: str) -> list[str]:
    """The cells of one claim; "" for the set-up that all share."""
    return [text for claim, _, text in experiments(NOTEBOOK) if claim == code]


@pytest.fixture
def names() -> dict[str, Any]:
    return run(*cells_of(""))


def verdict_of(code: str, names: dict[str, Any]) -> str:
    return str(run(*cells_of(code), names=names)["verdicts"][code].verdict)


def test_above_every_experiment_stands_what_the_article_says() -> None:
    headings = re.findall(r"^### ([A-D]\d+): (.*)$", TOLD, re.M)
    assert sorted(headings) == sorted((code, claim.title) for code, claim in CLAIMS.items())
    core = ["A7", "A14", "A16", "B7", "D3"]
    assert [code for code, _ in headings] == core + [code for code in CLAIMS if code not in core]
    for code, claim in CLAIMS.items():
        after = TOLD.partition(f"### {code}: {claim.title}\n")[2].partition("\n### ")[0]
        who = f"**Article {code[0]}'s program**" if claim.in_code else f"**Article {code[0]}**"
        condition = f" **Its condition:** {claim.condition}." if claim.condition else ""
        assert f"{who}, *{claim.section}*: {claim.says}{condition}" in after, code


def test_every_claim_is_judged_once_in_its_own_section() -> None:
    judged = re.findall(r'verdicts\.(?:record|cite)\("(\w+)"', "\n".join(CODE))
    assert sorted(judged) == sorted(CLAIMS)
    for code in CLAIMS:
        assert f'("{code}"' in cells_of(code)[-1]


def test_no_verdict_is_written_down() -> None:
    for text in CODE:
        if "record(" in text:
            for call in ast.walk(ast.parse(text)):
                if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "record":
                    for facts in call.args[1:3]:
                        assert not isinstance(facts, ast.Constant), text
                        for value in facts.values if isinstance(facts, ast.Dict) else ():
                            assert not isinstance(value, ast.Constant), text


def test_the_verdicts_are_those_of_pytorch_on_a_cpu() -> None:
    """As they are stored, with which nbval compares what the cells find."""
    (shown,) = [cell for cell in CELLS if cell["id"] == "table-show"]
    assert "nbval-check-output" in shown["metadata"]["tags"]
    *rows, _ = "".join(shown["outputs"][-1]["data"]["text/plain"]).splitlines()
    assert [row.split()[0] for row in rows] == list(CLAIMS)
    assert all(re.search(r"\[\d\d\]$", row) for row in rows)
    kinds = sorted(EXPECTED, key=len, reverse=True)
    found: dict[str, list[str]] = {}
    for row in rows:
        code, _, said = row.split(maxsplit=2)
        found.setdefault(next(kind for kind in kinds if said.startswith(kind)), []).append(code)
    assert {kind: " ".join(codes) for kind, codes in found.items()} == EXPECTED


def test_an_experiment_stands_alone() -> None:
    """No cell reads a name that another experiment made: only its own, those of the set-up, and Python's."""
    shared = set(run(*cells_of("")))
    for code in CLAIMS:
        tree = ast.parse("\n".join(cells_of(code)))
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        made |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        made |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        assert read - made - shared <= set(dir(__builtins__)) | set(__builtins__), code


@pytest.mark.parametrize("code", ["A7", "B9"])
def test_with_the_default_of_old(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    for kind in (torch.optim.Optimizer, nn.Module):

        def zero_grad(self: Any, set_to_none: bool = False, real: Callable[..., None] = kind.zero_grad) -> None:
            real(self, set_to_none=set_to_none)

        monkeypatch.setattr(kind, "zero_grad", zero_grad)
    assert verdict_of(code, names) == "holds"
    assert all(names["verdicts"][code].beyond.values())


def replacing(backward: Callable[..., None]) -> Callable[..., None]:
    """A backward that writes over what is in ``.grad``."""

    def leaves(node: Any, seen: set[Any]) -> None:
        if node is None or node in seen:
            return
        seen.add(node)
        if hasattr(node, "variable"):
            node.variable.grad = None
        for below, _ in node.next_functions:
            leaves(below, seen)

    def replace(loss: Tensor, *args: Any, **kwargs: Any) -> None:
        leaves(loss.grad_fn, set())
        backward(loss, *args, **kwargs)

    return replace


@pytest.mark.parametrize("code", ["A3", "A5", "D4"])
def test_if_backward_replaced(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(Tensor, "backward", replacing(Tensor.backward))
    assert verdict_of(code, names) == "does not hold"


def test_the_program_of_d3_is_the_articles(names: dict[str, Any]) -> None:
    """Written out as it is printed: the same starts end better, and the same worse."""
    change_of_loss = run(*cells_of("D3")[:3], names=names)["change_of_loss"]
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
