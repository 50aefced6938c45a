"""Stored notebooks ran in order, without errors, and hold no data about the machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from project_files import tree

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EACH = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)

MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|Users|tmp|work|opt|mnt|var)/\w|[A-Z]:\\\\?Users|ipykernel_\d+/")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# The bracketed letters keep this file from finding itself.
REGISTRY = re.compile(r"py[p]i\.org|python[h]osted\.org|ana[c]onda\.org|index-[u]rl|find-[l]inks|whl/[c]pu|pypi-[m]ore")
BINDER = "binder/requirements.txt"


def cells(path: Path) -> list[dict[str, Any]]:
    """Return the code cells that hold code."""
    all_cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in all_cells if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a cell or in metadata, but no picture: base64 may match by chance."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        if all(isinstance(part, str) for part in value):
            yield "".join(value)
        else:
            for part in value:
                yield from texts(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            if not key.startswith("image/"):
                yield from texts(part)


@EACH
def test_cells_ran_in_order_without_errors_and_widget_state(path: Path) -> None:
    counts = [cell["execution_count"] for cell in cells(path)]
    assert counts == list(range(1, len(counts) + 1))
    for cell in cells(path):
        if "raises-exception" not in cell["metadata"].get("tags", []):
            assert [out["ename"] for out in cell["outputs"] if out["output_type"] == "error"] == []
    metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    assert metadata["kernelspec"]["name"] == "python3"
    # A stored view without its model shows "Error displaying widget" instead of the picture.
    assert "widgets" not in metadata
    assert WIDGET_VIEW not in {kind for cell in cells(path) for out in cell["outputs"] for kind in out.get("data", {})}


@EACH
def test_no_path_of_the_machine(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    paths = [text for part in (notebook["metadata"], cells(path)) for text in texts(part) if MACHINE_PATH.search(text)]
    assert paths == []


def test_only_binder_names_a_package_registry() -> None:
    lines = [(name, line) for name, text in tree() for line in text.splitlines() if REGISTRY.search(line)]
    elsewhere = [(name, line) for name, line in lines if name != BINDER]
    assert elsewhere == []
    hosts = {host for _, line in lines for host in re.findall(r"https?://([^/\s]+)", line)}
    assert hosts == {"download.pytorch.org"}


def test_binder_pins_are_those_of_the_tests() -> None:
    def pins(name: str) -> list[tuple[str, str]]:
        return re.findall(r"^([\w-]+)==([^\s;]+)", (ROOT / name).read_text(encoding="utf-8"), re.M)

    tested = dict(pins("requirements.txt"))
    assert {package for package, _ in pins(BINDER)} >= {"torch", "jupyterlab", "ipykernel"}
    for package, version in pins(BINDER):
        assert version.removesuffix("+cpu") == tested[package]
