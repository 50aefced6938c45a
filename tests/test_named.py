"""Names in documents and notebooks exist: public names, arguments, attributes, commands and their options."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import gradlab
from gradlab import course
from gradlab.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path
    for pattern in ("*.md", "gradlab/**/*.md", "notebooks/*.md", "site/*.md", "tests/**/*.md", "notebooks/*.ipynb")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"  # it has removed names
)
EACH = pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
NOT_OURS = {
    *(
        "DockerSpawner",
        "LocalProcessSpawner",
        "jupyterhub_config",
        "jupyter_server_config",
        "default_setting_overrides",
    ),
    *("exp_avg", "exp_avg_sq", "expandable_segments", "including_emulation", "_record_memory_history"),
    *("cull_idle_timeout", "cull_interval", "cull_connected", "jupyterhub_idle_culler"),
    *("load_roles", "mem_limit", "barrier", "DistributedSampler", "set_epoch", "device_ids"),
    *("ExceptionType", "bench_NAME", "for_W", "for_x"),  # these stand for a name, or for an answer
}


def prose(path: Path, kind: str = "markdown") -> str:
    """Return the text of a document, or of a notebook's cells of one kind."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text if kind == "markdown" else ""
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == kind)


def snippets(path: Path) -> list[str]:
    """Return the code between backticks on one line, and the blocks of Python."""
    text = prose(path)
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    return [*blocks, *re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))]


@cache
def known_names() -> set[str]:
    """Return every word in the code, and PyTorch's names."""
    names = {name for part in (torch, torch.nn, torch.optim, torch.Tensor, torch.cuda) for name in dir(part)}
    for folder in ("gradlab", "site", "tests", ".github"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".js", ".toml", ".css", ".yml"} and path != Path(__file__):
                names |= {path.stem, *re.findall(r"[A-Za-z_]\w*", path.read_text(encoding="utf-8"))}
    return names


@EACH
def test_names_that_are_written_exist(path: Path) -> None:
    """Calls, attributes that are called, and words that can only be names: ``CamelCase`` and ``snake_case``."""
    name = r"(?<![\w/.-])([A-Za-z_]\w*)(?=\()|(?<=\.)([a-z_]\w*)(?=\()|\b([A-Z][a-z]+[A-Z]\w*)\b|\b([a-z]+_\w+)\b"
    written = {next(filter(None, groups)) for code in snippets(path) for groups in re.findall(name, code)}
    assert written - known_names() - NOT_OURS - set(re.findall(r"\w+", prose(path, "code"))) == set()


@cache
def things() -> dict[str, Any]:
    """Return public objects by name, and instances by the names that documents give them."""
    names = {name: getattr(gradlab, name) for name in dir(gradlab) if not name.startswith("_")}
    names |= {name: getattr(course, name) for name in dir(course) if not name.startswith("_")}
    run = gradlab.Run(gradlab.tasks.bowl(), gradlab.Recipe())
    with gradlab.watch() as report, gradlab.Ledger() as ledger:
        pass
    return names | {"run": run, "lab": gradlab.Lab("bowl"), "recipe": run.recipe, "report": report, "ledger": ledger}


def nodes(path: Path) -> Iterator[ast.AST]:
    for code in snippets(path):
        with contextlib.suppress(SyntaxError):
            yield from ast.walk(ast.parse(code))


@EACH
def test_arguments_and_attributes_of_public_names_exist(path: Path) -> None:
    missing = []
    for node in nodes(path):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in things():
                if not hasattr(things()[name], attribute) and attribute not in {"py", "js", "css", "toml", "md"}:
                    missing.append(f"{name}.{attribute}")
            case ast.Call(func=ast.Name(id=name), keywords=keywords) if name in things():
                takes = inspect.signature(things()[name]).parameters
                if not any(each.kind is each.VAR_KEYWORD for each in takes.values()):
                    missing += [f"{name}({word.arg}=)" for word in keywords if word.arg and word.arg not in takes]
    assert missing == []


@cache
def help_of(command: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit):
        main([command, "--help"] if command else ["--help"])
    return out.getvalue()


@EACH
def test_commands_and_their_options_exist(path: Path) -> None:
    commands = re.findall(r"^    (\w+)(?: |$)", help_of(""), re.M)
    assert {"doctor", "forecast"} <= set(commands)
    lines = "\n".join(re.findall(r"```bash\n(.*?)```", prose(path), re.S)).splitlines()
    for line in [*lines, *snippets(path), *prose(path, "code").splitlines()]:
        for command, rest in re.findall(r"(?:^!?|/|python -m )gradlab ([a-z]+)\b(.*)", line):
            assert command in commands, line
            ours = re.split(r" --(?= )|\S+\.py\b", rest)[0]  # what follows a script is the script's
            assert set(re.findall(r"--[a-z][\w-]*", ours)) <= set(re.findall(r"--[a-z][\w-]*", help_of(command))), line
