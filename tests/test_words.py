"""Names, docstrings, comments and messages use an engineer's words: words.toml lists what they avoid, and why."""

from __future__ import annotations

import ast
import inspect
import io
import itertools
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradlab
from gradlab import course

ROOT = Path(__file__).resolve().parents[1]
WORDS = tomllib.loads((ROOT / "tests" / "words.toml").read_text(encoding="utf-8"))
ELSEWHERE = {"corpus", "real_programs"}  # as their authors wrote them
FILES = sorted(
    path
    for folder in ("gradlab", "site", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if not ELSEWHERE & set(path.parts)
)
MAX_PARAMETERS = 3
"""Parameters of a public function that needs no sections in its docstring."""


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each name that the code binds, and its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.alias | ast.ExceptHandler) and (name := getattr(node, "asname", None) or node.name):
            yield name, node.lineno


def docstrings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        kinds = ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield text, getattr(node, "lineno", 1)
        body = getattr(node, "body", [])
        for before, after in itertools.pairwise(body) if isinstance(body, list) else ():
            match before, after:
                case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(text))):
                    yield text, after.lineno


def comments(source: str) -> Iterator[tuple[str, int]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string, token.start[0]


def messages(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield strings of more than three words: errors, helps, findings, and docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") > 2:
            yield node.value, node.lineno


def faults(source: str, where: str) -> list[str]:
    """Return the violations of the list in a file."""
    tree, allowed = ast.parse(source), WORDS["exceptions"]
    listed = [
        f"{where}:{line} {name}: {WORDS['identifiers'][name.lstrip('_')]}"
        for name, line in bound_names(tree)
        if name.lstrip("_") in WORDS["identifiers"] and f"{where} {name}" not in allowed
    ]
    for text, line in docstrings(tree):
        first = text.partition("\n\n")[0].partition(". ")[0]
        listed += [
            f"{where}:{line} {kind}: {first[:60]}" for kind, rx in WORDS["docstrings"].items() if re.search(rx, first)
        ]
    for text, line in {*comments(source), *messages(tree), *docstrings(tree)}:
        for pattern, reason in WORDS["prose"].items():
            if (hit := re.search(pattern, text, re.IGNORECASE)) and f"{where} {hit[0].lower()}" not in allowed:
                listed.append(f"{where}:{line} {hit[0]}: {reason}")
    return listed


@pytest.mark.parametrize("folder", sorted({str(path.parent.relative_to(ROOT)) for path in FILES}))
def test_names_and_words(folder: str) -> None:
    paths = [path for path in FILES if path.parent == ROOT / folder]
    assert [f for path in paths for f in faults(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))] == []


def public_calls() -> Iterator[tuple[str, object]]:
    """Yield the public functions, classes and methods."""
    for module in (gradlab, course):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                yield name, value
            for key, method in vars(value).items() if inspect.isclass(value) else ():
                if inspect.isfunction(method) and not key.startswith("_"):
                    yield f"{name}.{key}", method


def test_public_calls_with_many_parameters_have_sections() -> None:
    missing = []
    for name, call in public_calls():
        target = call.__init__ if inspect.isclass(call) else call
        parameters = [each for each in inspect.signature(target).parameters if each != "self"]
        text = inspect.getdoc(call) or ""
        if len(parameters) > MAX_PARAMETERS:
            returns = [] if inspect.isclass(call) else ["Returns:"]
            missing += [f"{name}: {part}" for part in ("Args:", *returns, "Raises:") if part not in text]
    assert missing == []


def test_the_checker_finds_each_kind() -> None:
    bad = '"""What it does."""\n\ndef f(said):\n    """Is it at work?"""\n    return said  # so many bytes\n'
    assert len(faults(bad, "x.py")) == 4
    assert faults('"""The bytes in use."""\n\nsize = 3  # bytes\n', "x.py") == []


@pytest.mark.parametrize("entry", WORDS["exceptions"])
def test_each_exception_is_needed(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = entry.partition(" ")[0]
    monkeypatch.delitem(WORDS["exceptions"], entry)
    assert faults((ROOT / path).read_text(encoding="utf-8"), path) != []
