"""Recordings of the labs and instruments in a notebook, made by running the notebook's cells again.

For each lab, ``site/replays.toml`` sets the number of updates, the switches that readers can change, and when.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import io
import json
import linecache
import os
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .slices import needed_cells

_LAST_VALUE = "_value_of_the_last_line"
HOME = "home"  # the name of the first page's recording, which does not belong to a notebook


@dataclass(frozen=True)
class Replay:
    """A recording for the site: a script in its own file, and the data for the element that loads the script."""

    name: str
    """The numbers of the notebook and of the lab or instrument in it, such as ``"03-1"``, or HOME; the file's stem."""
    kind: str  # "replay" for a lab, "instrument" for an instrument
    title: str
    caption: str
    description: str  # text alternative of the first picture
    png: bytes
    """The picture for the first page; b"" for other recordings, whose pictures are stored in their notebooks."""
    script: str  # the contents of the file

    @property
    def file(self) -> str:
        """The path of the script's file, relative to the root of the site."""
        return f"replays/{self.name}.js"

    @property
    def attributes(self) -> dict[str, str]:
        """The values that the template ``cells.html.j2`` writes into the recording's element."""
        return {"name": self.name, "kind": self.kind, "title": self.title, "caption": self.caption, "src": self.file}


def replay_settings(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the arguments for ``Lab.record`` from ``replays.toml`` in ``folder``, by the name of the recording."""
    return tomllib.loads((folder / "replays.toml").read_text(encoding="utf-8"))


def live_cells(notebook: Any) -> list[int]:
    """Return the indices of the cells whose stored output is the still picture of a lab or instrument."""
    return [
        index
        for index, cell in enumerate(notebook["cells"])
        if any(each.get("metadata", {}).get("image/png", {}).get("live") for each in cell.get("outputs", ()))
    ]


def record_notebook(path: Path, settings: Mapping[str, Mapping[str, Any]]) -> list[tuple[int, Replay]]:
    """Run the cells that a notebook's labs and instruments need; return (cell index, recording) for each of them.

    Raises ValueError, with the notebook and the cell, if a cell fails. Call this function in a separate process,
    because it changes the working directory, and PyTorch's global settings and random generator.
    """
    notebook = json.loads(path.read_text(encoding="utf-8"))  # json, because nbformat takes as long to import as torch
    number = path.name.partition("_")[0]
    live = live_cells(notebook)
    code = ["".join(cell["source"]) if cell["cell_type"] == "code" else "" for cell in notebook["cells"]]
    names = {index: f"{number}-{order}" for order, index in enumerate(live, 1)}
    recordings: list[tuple[int, Replay]] = []
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for index in needed_cells(code, live):
            try:
                shown = _run_cell(f"<cell {index}>", code[index], namespace)
                if index in names:
                    replay = _recorded(names[index], shown, settings.get(names[index], {}))
                    recordings += [(index, replay)] if replay else []
                    for line in notebook["cells"][index]["metadata"].get("gradlab", {}).get("stored_after", ()):
                        exec(line, namespace)
            except Exception as error:
                raise ValueError(f"{path.name}, cell {index}: {type(error).__name__}: {error}") from error
    return recordings


def record_home(settings: Mapping[str, Mapping[str, Any]]) -> Replay:
    """Return the recording for the first page: a lab that trains on digits, with one switch to change."""
    from gradlab import Lab, Recipe

    panels = ["picture", "gradient", "held-out loss"]
    lab = Lab("digits", Recipe(lr=0.2), controls=["line"], panels=panels, speed="10 updates/s")
    lab.run(updates=settings[HOME]["marks"][0])  # the recording opens here, and the still shows this update
    replay = _recorded(HOME, lab, settings[HOME])
    assert replay is not None
    return replay


def _run_cell(name: str, source: str, namespace: dict[str, Any]) -> Any:
    """Run a cell, with its source in linecache; return the value of a final expression, or None if there is none.

    Calls to print are skipped, because they are not shown and may need files that other cells write.
    """
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source)
    tree.body = [each for each in tree.body if not ast.unparse(each).startswith("print(")]
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        shown = ast.Assign([ast.Name(_LAST_VALUE, ast.Store())], last.value)
        tree.body[-1] = ast.fix_missing_locations(ast.copy_location(shown, last))
    exec(compile(tree, name, "exec"), namespace)
    return namespace.pop(_LAST_VALUE, None)


def _recorded(name: str, shown: Any, settings: Mapping[str, Any]) -> Replay | None:
    """Return a recording of ``shown`` if it is a lab or an instrument that can be recorded, otherwise None."""
    from gradlab import Lab
    from gradlab.drawing import to_png

    if isinstance(shown, Lab):
        packed = shown.record(**{"updates": max(shown.runner.updates, 1), **settings}).packed()
    else:
        try:
            packed = shown.packed()
        except (AttributeError, NotImplementedError):
            return None
    script = f'gradlabRecording("{name}", "{packed.packed}");\n'
    png = to_png(packed.still) if name == HOME else b""
    return Replay(name, packed.kind, packed.title, packed.caption, packed.alt, png, script)


def record_all(
    notebooks: list[Path], settings: Mapping[str, Mapping[str, Any]], workers: int, home: bool = True
) -> Iterator[tuple[Path | None, list[tuple[int, Replay]]]]:
    """Record all notebooks and, with ``home``, the first page, in ``workers`` processes; yield results as they come.

    A result is a notebook's path (None for the first page) and a list of (index of a cell, recording). Raises
    ValueError if a recording fails.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")  # a fork of a process that has used threads may hang
    pool = ProcessPoolExecutor(workers, context, initializer=_begin_worker)
    try:
        futures: dict[Any, Path | None] = {pool.submit(record_home, settings): None} if home else {}
        futures |= {pool.submit(record_notebook, path, settings): path for path in notebooks}
        for future in as_completed(futures):
            path, result = futures[future], future.result()
            yield path, result if isinstance(result, list) else [(0, result)]
    except BrokenProcessPool as error:  # the pool has ended the other processes
        raise ValueError("a recording process was killed, probably because memory ran out") from error
    except BaseException:  # on Ctrl-C, too, the pool would otherwise wait until every notebook is recorded
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    from gradlab._process import end_with_parent
    from gradlab._torch import delay_dynamo

    end_with_parent()
    gc.set_threshold(50_000)  # a recording creates millions of small objects; scanning them took 5 % of the time
    delay_dynamo()  # otherwise an instrument's first optimizer would import Dynamo; a Lab calls delay_dynamo() itself
