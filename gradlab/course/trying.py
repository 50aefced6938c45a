"""The experiments of notebook 12 without Jupyter: its cells, run in order in this process."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

from .claim_log import ClaimLog
from .claims import NOTEBOOK

_HEADING = re.compile(r"^##+ (.*)$", re.M)
_EXPERIMENT = re.compile(r"^([A-Z]\d+): ")
_FIRST = "Five claims"
"""Cells above this heading are the set-up that all experiments share."""
_WIDGET = re.compile(r"^predict\(")


def try_claims(notebook: Path | None = None) -> tuple[ClaimLog, dict[str, str]]:
    """Run the experiments of notebook 12 and return the log of verdicts, and for claims that failed the error.

    notebook: where it is; without one it is looked for here and in the clone around gradlab. What its cells print is
        dropped. Raises ValueError if it is not found, cannot be read or has no log of verdicts.
    """
    notebook = notebook or _find_notebook()
    names: dict[str, Any] = {"__name__": "__main__"}
    errors: dict[str, str] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for code, cell, text in experiments(notebook):
            if code in errors:
                continue  # what goes before failed, and this cell needs it
            try:
                exec(compile(text, f"<{cell}>", "exec"), names)
            except Exception as error:
                if not code:
                    raise ValueError(f"{notebook}: its set-up fails: {type(error).__name__}: {error}") from error
                errors[code] = f"{type(error).__name__}: {error}".splitlines()[0]
    return next(value for value in names.values() if isinstance(value, ClaimLog)), errors


def _find_notebook() -> Path:
    """Return where notebook 12 is: in this folder, in ``notebooks`` below it, or in the clone around gradlab.

    Raises ValueError if it is in none of them.
    """
    clone = Path(__file__).parents[2] / "notebooks"
    for folder in (Path.cwd(), Path.cwd() / "notebooks", clone):
        if (folder / f"{NOTEBOOK}.ipynb").is_file():
            return folder / f"{NOTEBOOK}.ipynb"
    raise ValueError(f"{NOTEBOOK}.ipynb is not here: run this in a clone of gradlab, or name the notebook")


def experiments(notebook: Path) -> list[tuple[str, str, str]]:
    """Return the cells to run: the claim's code ("" for the set-up), the cell's id and its text.

    Raises ValueError if the file is no notebook, or another one.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{notebook} cannot be read as a notebook: {type(error).__name__}: {error}") from None
    if not any("ClaimLog(" in "".join(cell["source"]) for cell in cells):
        raise ValueError(f"{notebook} makes no ClaimLog, so it is not notebook 12")
    found, section, in_setup = [], "", True
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            for heading in _HEADING.findall(text):
                in_setup = in_setup and heading != _FIRST
                claim = _EXPERIMENT.match(heading)
                section = claim[1] if claim else ""
        elif (section or in_setup) and not _WIDGET.match(text):
            found.append((section, cell.get("id", ""), text))
    return found
