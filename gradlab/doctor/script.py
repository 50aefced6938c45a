"""The doctor for a script: runs it unchanged, as ``python script.py`` would, and prints the report at its end."""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from .watching import watch

CLEAN, FINDINGS, NOT_RUN = 0, 1, 2
"""Exit codes; a hint alone is clean. A script that raises, with no finding to explain it, could not be run."""


def run_script(script: str, arguments: Sequence[str] = (), *, as_json: bool = False) -> int:
    """Run a script under ``watch``, print the report, and return the exit code.

    With ``as_json`` the report alone goes to standard output, and what the script prints to standard error.
    """
    path = Path(script)
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no such file"
        print(f"gradlab doctor: {script}: {what}; give the path of a Python script", file=sys.stderr)
        return NOT_RUN
    report = watch()
    failed = False
    out = sys.stderr if as_json else sys.stdout
    try:
        with _as_main(path, arguments), contextlib.redirect_stdout(out), report:
            runpy.run_path(str(path), run_name="__main__")
    except KeyboardInterrupt:
        print("gradlab doctor: the script was interrupted", file=sys.stderr)
    except SystemExit as error:
        failed = error.code not in (None, 0)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException as error:
        failed = True
        _print_own_part(error, str(path))
    print(json.dumps(report.as_dict(), indent=2) if as_json else f"\n{report.text}", flush=True)
    return FINDINGS if report.wrong else NOT_RUN if failed else CLEAN


@contextlib.contextmanager
def _as_main(path: Path, arguments: Sequence[str]):  # type: ignore[no-untyped-def]  # a generator of None
    """Let the script find what it would find: its arguments, and the modules beside it."""
    argv, first = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [str(path), *arguments], os.fspath(path.resolve().parent)
    try:
        yield
    finally:
        sys.argv, sys.path[0] = argv, first


def _print_own_part(error: BaseException, path: str) -> None:
    """Print the traceback from the script on: the frames above it are ours and say nothing to its author."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace, file=sys.stderr)
