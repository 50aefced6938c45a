"""The code in notebooks: plain, and without plotting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from test_series import EACH, stored


def all_code(path: Path) -> Iterator[ast.AST]:
    for cell in stored(path):
        if cell["cell_type"] == "code":
            plain = [line for line in cell["source"].splitlines() if not line.lstrip().startswith(("%", "!"))]
            yield from ast.walk(ast.parse("\n".join(plain)))


@EACH
def test_nothing_is_clever(path: Path) -> None:
    for node in all_code(path):
        assert not isinstance(node, ast.NamedExpr), "a walrus"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("exec", "eval", "compile"), node.func.id
        if isinstance(node, ast.Dict):
            assert not any(isinstance(value, ast.Lambda) for value in node.values), "lambdas in a dictionary"


@EACH
def test_pictures_come_from_gradlab(path: Path) -> None:
    for node in all_code(path):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("matplotlib") for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("matplotlib")
            assert not (node.module or "").startswith("gradlab") or node.module in ("gradlab", "gradlab.course")
