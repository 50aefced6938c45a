"""``gradlab factcheck``: test the claims of notebook 12. Exit codes: 0 if all were tested, 1 if not all, 2 if none."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import Parsers

if TYPE_CHECKING:
    from ..course import ClaimLog

_NOTEBOOK = "12_fact_check.ipynb"
_HEADING = re.compile(r"^##+ (?:([A-Z]\d+): )?", re.M)


def add_factcheck(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Add ``gradlab factcheck`` and its options to ``parsers``."""
    parser = parsers.add_parser(
        "factcheck",
        help="test on this PyTorch what four articles claim about gradients",
        description="Runs the experiments of notebook 12, and others that it leaves out, and prints the verdicts.",
    )
    parser.add_argument("notebook", nargs="?", metavar="NOTEBOOK", help="path of 12_fact_check.ipynb (default: search)")
    parser.add_argument("--format", choices=("md", "json"), default="md", help="Markdown (the default) or JSON")
    parser.add_argument("-o", "--out", metavar="FILE", help="write the verdicts to this file")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    log, errors = try_claims(Path(options.notebook) if options.notebook else None)
    text = log.markdown() if options.format == "md" else log.json() + "\n"
    if options.out is None:
        if isinstance(sys.stdout, io.TextIOWrapper):  # the encoding of redirected output may lack characters
            sys.stdout.reconfigure(encoding="utf-8")
        sys.stdout.write(text)
    else:
        try:
            Path(options.out).write_text(text, encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{options.out} cannot be written: {error.strerror or error}") from None
        print(f"{options.out}: {log.total}")
    for codes, reason in (errors | log.failures).items():
        print(f"{codes} could not be tried: {reason}", file=sys.stderr)
    return 1 if log.missing else 0


def try_claims(notebook: Path | None = None) -> tuple[ClaimLog, dict[str, str]]:
    """Test all claims of notebook 12; return the log of verdicts, and the errors in the notebook's cells by claim code.

    If ``notebook`` is None, search the current folder and the clone of gradlab. The output of the cells is dropped.
    Raises ValueError if the notebook is not found, cannot be read, or creates no ClaimLog, or if its set-up fails.
    """
    from ..course import ClaimLog

    notebook = notebook or _find_notebook()
    names: dict[str, Any] = {"__name__": "__main__"}
    errors: dict[str, str] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for code, cell, text in experiments(notebook):
            if code in errors:
                continue  # an earlier cell of this claim has failed
            try:
                exec(compile(text, f"<{cell}>", "exec"), names)
            except Exception as error:
                if not code:
                    raise ValueError(f"{notebook}: its set-up code failed: {type(error).__name__}: {error}") from error
                errors[code] = f"{type(error).__name__}: {error}".splitlines()[0]
    log = next(value for value in names.values() if isinstance(value, ClaimLog))
    log.try_others()
    return log, errors


def _find_notebook() -> Path:
    clone = Path(__file__).parents[2] / "notebooks"
    for folder in (Path.cwd(), Path.cwd() / "notebooks", clone):
        if (folder / _NOTEBOOK).is_file():
            return folder / _NOTEBOOK
    raise ValueError(f"{_NOTEBOOK} was not found: run this in a clone of gradlab, or give the notebook's path")


def experiments(notebook: Path) -> list[tuple[str, str, str]]:
    """Return a tuple (claim code, cell id, source) for each cell to run; set-up before the first claim has the code "".

    Raises ValueError if ``notebook`` cannot be read as a notebook, or creates no ClaimLog.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{notebook} cannot be read as a notebook: {type(error).__name__}: {error}") from None
    runnable, section, in_setup = [], "", True
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            for section in _HEADING.findall(text):
                in_setup = in_setup and not section
        elif (section or in_setup) and not text.startswith("predict("):
            runnable.append((section, cell.get("id", ""), text))
    if not any("ClaimLog(" in text for _, _, text in runnable):
        raise ValueError(f"{notebook} creates no ClaimLog, so it is not notebook 12")
    return runnable
